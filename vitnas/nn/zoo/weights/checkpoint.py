"""Reads the state dict of a checkpoint file. Code in the file is never run."""

from __future__ import annotations

import argparse
import pickle
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from vitnas.errors import DataError, printable, reason_of, shorten
from vitnas.files import open_file
from vitnas.nn.numbers import check_finite

_ENTRIES = (
    *("state_dict", "model", "net", "network", "module", "model_state_dict"),
    *("state_dict_ema", "model_ema", "ema"),
)
"""Keys under which a checkpoint may keep its state dict. The first that it has is used."""
_PREFIXES = ("module.", "_orig_mod.", "model.")
"""Prefixes that wrappers (DataParallel, compile, Lightning) put before every name."""
_HARMLESS = (argparse.Namespace,)
"""Classes that a checkpoint may hold besides torch's: training arguments of DeiT and timm."""
_STARTS = {
    b"version https://git-lfs": "is a pointer of Git LFS, not the file it stands for",
    b"<": "is a web page, not a checkpoint: what was downloaded is not the file itself",
}


@dataclass(frozen=True)
class ForeignCheckpoint:
    """The state dict of a file, with its tensors on the CPU.

    Attributes:
        file: the file.
        state: name -> tensor, without a wrapper's prefix.
        entry: the key of the file that holds the state dict; empty if it is the whole file.
        others: other keys of the file that hold a state dict, such as an average.
        model: the network's name in the file, or None. It is that code's name, not the zoo's.
    """

    file: Path
    state: Mapping[str, Tensor]
    entry: str = ""
    others: tuple[str, ...] = ()
    model: str | None = None


def read_checkpoint(path: str | Path, constants: str | None = None) -> ForeignCheckpoint:
    """The state dict in a PyTorch checkpoint or a safetensors file.

    A pickle may hold tensors, numbers, text, lists, mappings, and training arguments
    (`argparse.Namespace`). A file with any other object is an error before any of its code can run.

    Args:
        path: the file.
        constants: pattern of names; the numbers of these tensors need not be finite.

    Raises:
        DataError: the file is missing, a folder, empty, damaged, or asks for code; it has no state
            dict, or a number is not finite.
    """
    file = Path(path)
    start = _first_bytes(file)
    is_safetensors = start[8:9] == b"{" and not start.startswith(b"PK")
    tree = _read_safetensors(file) if is_safetensors else _read_pickle(file)
    if not isinstance(tree, Mapping):
        raise DataError(f"{file}: holds {_kind(tree)} and no state dict; save model.state_dict()")
    found = _state_of(tree)
    if found is None:
        keys = ", ".join(printable(str(key)) for key in list(tree)[:5]) or "nothing"
        raise DataError(f"{file}: has no state dict; its first keys are {keys}")
    entry, state = found
    others = tuple(key for key in _ENTRIES if key != entry and _tensors(tree.get(key)))
    for name, value in state.items():
        _check_plain(name, value, file)
        if constants is None or not re.search(constants, name):
            check_finite(name, value, file)
    return ForeignCheckpoint(file, _unwrapped(state), entry, others, _model_named(tree))


def _first_bytes(file: Path) -> bytes:
    try:
        if file.is_dir():
            raise DataError(f"{file}: is a folder; give the checkpoint file in it")
        with open_file(file) as stream:
            start = stream.read(64)
    except OSError as error:
        raise DataError(f"{file}: {reason_of(error)}") from None
    except ValueError:
        raise DataError(f"{file}: is not the name of a file") from None
    if not start:
        raise DataError(f"{file}: is empty")
    for sign, rule in _STARTS.items():
        if start.lstrip().startswith(sign):
            raise DataError(f"{file}: {rule}")
    return start


def _read_safetensors(file: Path) -> dict[str, Tensor]:
    try:
        state: dict[str, Tensor] = load_file(file)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise DataError(f"{file}: is a damaged safetensors file ({error})") from None
    except MemoryError:
        raise DataError(f"{file}: does not fit into memory") from None
    return state


def _read_pickle(file: Path) -> Any:
    try:
        with torch.serialization.safe_globals(list(_HARMLESS)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols that torch does not write
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever its parsers raise
        text = str(error)
        if wanted := re.search(r"GLOBAL ([\w.]+)", text):
            rule = f"asks for the code {wanted[1]} and is not opened: save the state dict alone"
            raise DataError(f"{file}: {rule}, or as safetensors") from None
        if "Unsupported operand" in text and isinstance(error, pickle.UnpicklingError):
            rule = "is no pickle of torch.save and is not opened: it may ask for any code"
            raise DataError(f"{file}: {rule}") from None
        raise DataError(f"{file}: is damaged or not a checkpoint{_reason(text)}") from None


def _reason(text: str) -> str:
    """The sentence of torch's message that names the problem, in brackets; empty without one."""
    text = re.sub(r"\x1b\[\d*m|\[enforce fail[^\]]*\]|.*WeightsUnpickler error:", "", text)
    sentence = re.split(r"\. |\n", text.strip(" .\n"))[0]
    if " " not in sentence:
        return ""
    return f" ({sentence if len(sentence) <= 100 else sentence[:97] + '...'})"


def _state_of(tree: Mapping[Any, Any], levels: int = 4) -> tuple[str, dict[str, Tensor]] | None:
    """(entry, tensors) of the first entry that holds tensors, else of the file itself."""
    for entry in _ENTRIES:
        inside = tree.get(entry)
        if state := _tensors(inside):
            return entry, state
        if levels and isinstance(inside, Mapping) and (found := _state_of(inside, levels - 1)):
            return entry, found[1]
    state = _tensors(tree)
    return ("", state) if state else None


def _tensors(tree: Any) -> dict[str, Tensor]:
    if not isinstance(tree, Mapping):
        return {}
    return {k: v for k, v in tree.items() if isinstance(k, str) and isinstance(v, Tensor)}


def _check_plain(name: str, value: Tensor, file: Path) -> None:
    """Raise `DataError` if a tensor is sparse, not on the CPU, or does not hold all its numbers."""
    is_there = value.layout == torch.strided and value.device.type == "cpu"
    if not is_there or value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise DataError(f"{file}: {shorten(name)} is sparse, or does not hold all of its numbers")


def _unwrapped(state: dict[str, Tensor]) -> dict[str, Tensor]:
    for _ in _PREFIXES:
        for prefix in _PREFIXES:
            if all(name.startswith(prefix) for name in state):
                state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state


def _model_named(tree: Mapping[Any, Any]) -> str | None:
    arguments = tree.get("args")
    named = tree.get("arch") or getattr(arguments, "model", None)
    if named is None and isinstance(arguments, Mapping):
        named = arguments.get("model")
    return named if isinstance(named, str) else None


def _kind(value: Any) -> str:
    return "a tensor" if isinstance(value, Tensor) else f"a {type(value).__name__}"
