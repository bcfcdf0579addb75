"""An unfinished training as one file: tensors and some JSON, no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vitnas.config.differences import LISTED, SCORING, TESTED
from vitnas.config.files import validate
from vitnas.config.parts import Frozen
from vitnas.config.recipe import Recipe
from vitnas.errors import ConfigError, RunError, shorten
from vitnas.files import open_file, write_bytes, writing
from vitnas.nn.weights import check_state, state_of

FILE_NAME = "checkpoint.safetensors"


class _Facts(Frozen):
    """What is stored beside the tensors, as JSON; `sha256` is of tensors and other facts."""

    identity: dict[str, Any]
    log: Annotated[list[dict[str, Any]], Field(max_length=1_000_000)]
    groups: list[dict[str, Any]]
    sha256: str


@dataclass(frozen=True)
class Checkpoint:
    """What a training needs to resume after an epoch.

    Attributes:
        identity: what the training depends on; only the same one may resume.
        log: one entry for every epoch that has ended.
        tensors: `model/NAME`, `ema/NAME` and `optimizer/NUMBER/NAME`.
        groups: the optimizer's settings for each group of parameters.
    """

    identity: Mapping[str, Any]
    log: list[dict[str, Any]]
    tensors: dict[str, Tensor]
    groups: list[dict[str, Any]]

    def save(self, folder: Path) -> None:
        """Write it to a second file and rename: a kill leaves the old one or the new one.

        Raises:
            RunError: the folder cannot be written to.
        """
        tensors = {
            name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()
        }
        facts = {"identity": self.identity, "log": self.log, "groups": self.groups}
        metadata = {name: json.dumps(value) for name, value in facts.items()}
        metadata["sha256"] = json.dumps(_digest(metadata, tensors))
        with writing(folder):
            write_bytes(folder / FILE_NAME, save(tensors, metadata))

    def restore(self, prefix: str, module: nn.Module) -> None:
        """Copy the tensors under `prefix` into `module`, which is the one they were taken from.

        Raises:
            ConfigError, DataError: they are another module's; see `check_state`.
        """
        start, wanted = f"{prefix}/", state_of(module)
        stored = {n.removeprefix(start): t for n, t in self.tensors.items() if n.startswith(start)}
        check_state(stored, wanted)
        with torch.no_grad():
            for name, tensor in wanted.items():
                tensor.copy_(stored[name])

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


def read(folder: Path, wanted: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint in `folder`, or None where there is none.

    Args:
        folder: that of a training.
        wanted: the identity of the training that resumes.

    Raises:
        RunError: it is another training's, or was changed after it was written; says what differs.
    """
    path = folder / FILE_NAME
    if not os.path.lexists(path):
        return None
    try:
        open_file(path).close()
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = validate(_Facts, {name: json.loads(text) for name, text in metadata.items()})
    except (OSError, SafetensorError, ValueError, RecursionError, ConfigError) as error:
        raise _damaged(folder, str(error) or type(error).__name__) from None
    check_same(facts.identity, wanted, folder)
    if facts.sha256 != _digest(metadata, tensors):
        raise _damaged(folder, "its content does not match its checksum")
    if [entry.get("epoch") for entry in facts.log] != list(range(1, len(facts.log) + 1)):
        raise _damaged(folder, "its log does not have the epochs 1, 2, 3 ...")
    return Checkpoint(facts.identity, facts.log, tensors, facts.groups)


def _damaged(folder: Path, problem: str) -> RunError:
    path, line = folder / FILE_NAME, problem.splitlines()[0][:200]
    return RunError(f"{path}: damaged checkpoint ({line}); delete {folder} to start anew")


def _digest(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of all facts except `sha256`, and of every tensor's name, type, shape and bytes."""
    facts = {name: text for name, text in metadata.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def check_same(stored: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path) -> None:
    """Refuse to resume from the checkpoint of another training.

    A field of a recipe that an older vitnas did not write had its default. What it wrote
    nothing of, the list of the images and those that score or test, counts as now.

    Raises:
        RunError: names the first thing that differs.
    """
    before, now = flat(stored), flat(wanted)
    unwritten = flat({"recipe": Recipe().model_dump(mode="json")})
    for part in (LISTED, SCORING, TESTED):
        unwritten[f"images.{part}"] = now.get(f"images.{part}")
    for name in [*now, *before]:
        was = before.get(name, unwritten.get(name))
        if was != now.get(name):
            raise RunError(
                f"{folder}: holds the checkpoint of another training: {name} was "
                f"{shorten(was)} and is {shorten(now.get(name))}; "
                "give another --to, or delete that folder to start anew"
            )


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree's values by their names with points between, as `recipe.distill.kind`."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return found


def _write_group(group: Mapping[str, Any]) -> dict[str, Any]:
    """An optimizer's settings as JSON; a step count may be a tensor (LAMB's is)."""
    plain = {k: v.item() if isinstance(v, Tensor) else v for k, v in group.items() if k != "params"}
    tensors = [name for name, value in group.items() if isinstance(value, Tensor)]
    return {**plain, "tensors": tensors}


def _read_group(group: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in group.items() if name != "tensors"}
    return {**plain, **{name: torch.tensor(plain[name]) for name in group["tensors"]}}
