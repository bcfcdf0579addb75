"""A training half done, as one file: tensors and a little JSON, no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vitnas.config.files import write_bytes
from vitnas.errors import RunError, shorten
from vitnas.nn.weights import state_of

FILE_NAME = "checkpoint.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """What is needed to go on after an epoch.

    Attributes:
        identity: what the training is of; another one must not go on with it.
        log: one entry for every epoch that has ended.
        tensors: `model/NAME`, `ema/NAME` and `optimizer/NUMBER/NAME`.
        groups: the optimizer's settings for each group of parameters.
    """

    identity: Mapping[str, Any]
    log: list[dict[str, Any]]
    tensors: dict[str, Tensor]
    groups: list[dict[str, Any]]

    def save(self, folder: Path) -> None:
        """Write it beside and rename: a kill leaves the old one or the new one.

        Raises:
            RunError: the folder cannot be written to.
        """
        tensors = {
            name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()
        }
        facts = {"identity": self.identity, "log": self.log, "groups": self.groups}
        metadata = {name: json.dumps(value) for name, value in facts.items()}
        try:
            write_bytes(folder / FILE_NAME, save(tensors, metadata))
        except OSError as error:
            raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None

    def restore(self, prefix: str, module: nn.Module) -> None:
        """Copy the tensors under `prefix` into `module`, which is the one they were taken from."""
        for name, tensor in state_of(module).items():
            with torch.no_grad():
                tensor.copy_(self.tensors[f"{prefix}/{name}"])

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Give `optimizer` its moments and step counts back."""
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in self.tensors.items():
            if name.startswith("optimizer/"):
                _, number, key = name.split("/")
                moments.setdefault(int(number), {})[key] = tensor
        current = optimizer.state_dict()["param_groups"]
        groups = [
            {**now, **_read_group(then)} for now, then in zip(current, self.groups, strict=True)
        ]
        optimizer.load_state_dict({"state": moments, "param_groups": groups})


def take(
    identity: Mapping[str, Any],
    log: list[dict[str, Any]],
    modules: Mapping[str, nn.Module],
    optimizer: torch.optim.Optimizer,
) -> Checkpoint:
    """The checkpoint of a training as it is now; `modules` by their prefix."""
    tensors = {
        f"{prefix}/{name}": tensor
        for prefix, module in modules.items()
        for name, tensor in state_of(module).items()
    }
    state = optimizer.state_dict()
    for number, moments in state["state"].items():
        tensors |= {f"optimizer/{number}/{key}": value for key, value in moments.items()}
    return Checkpoint(identity, log, tensors, [_write_group(g) for g in state["param_groups"]])


def read(folder: Path) -> Checkpoint | None:
    """The checkpoint in `folder`, or None where there is none.

    Raises:
        RunError: it is damaged.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            facts = {name: json.loads(text) for name, text in (file.metadata() or {}).items()}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return Checkpoint(facts["identity"], facts["log"], tensors, facts["groups"])
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(
            f"{path}: damaged checkpoint ({problem}); delete {folder} to start anew"
        ) from None


def check_same(stored: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on with the checkpoint of another training.

    Raises:
        RunError: names the first thing that differs.
    """
    before, now = _flat(stored), _flat(wanted)
    for name in [*now, *before]:
        if before.get(name) != now.get(name):
            raise RunError(
                f"{folder}: holds the checkpoint of another training: {name} was "
                f"{shorten(before.get(name))} and is {shorten(now.get(name))}; "
                "give another --to, or delete that folder to start anew"
            )


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return flat


def _write_group(group: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON can say of an optimizer's settings; a step count may be a tensor (LAMB's is)."""
    plain = {k: v.item() if isinstance(v, Tensor) else v for k, v in group.items() if k != "params"}
    tensors = [name for name, value in group.items() if isinstance(value, Tensor)]
    return {**plain, "tensors": tensors}


def _read_group(group: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in group.items() if name != "tensors"}
    return {**plain, **{name: torch.tensor(plain[name]) for name in group["tensors"]}}
