"""model.onnx and model.pt2: networks that run without their Python."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitnas.errors import DataError, DeviceError, VitnasError, printable, reason_of, shorten
from vitnas.exported.programs import quiet
from vitnas.exported.runtime import ask_with, session_of
from vitnas.files import open_file
from vitnas.scoring.classifier import Classifier, count_classes, facts_beside

_Opened = tuple[Callable[[Tensor], Tensor], tuple[Any, ...]]
"""What runs a program, and the shape of its images; what is not a number may be any."""


def open_program(path: Path, device: str = "auto") -> Classifier:
    """The network in a .onnx or .pt2 file, which runs on the CPU.

    A .pt2 file is a program: open none that you do not trust.

    Raises:
        VitnasError: onnxruntime is missing; or the file is damaged, or no network for images.
    """
    if device not in ("auto", "cpu"):
        raise DeviceError(f"{path}: such a file is run on the CPU, not on '{device}'")
    try:
        open_file(path).close()
    except OSError as error:
        raise DataError(f"{path}: {reason_of(error)}") from None
    ask, shape = _OPENERS[path.suffix](path)
    sides = _sizes(path, shape)
    classes = count_classes(str(path), ask, torch.zeros(2, *sides))
    preprocessing, names, held = facts_beside(path.parent, str(path), sides, classes)
    return Classifier(
        str(path),
        RUNTIMES[path.suffix],
        ask,
        sides[0],
        (sides[1], sides[2]),
        classes,
        torch.device("cpu"),
        preprocessing,
        names,
        held,
    )


def _sizes(path: Path, shape: tuple[Any, ...]) -> tuple[int, int, int]:
    """(C, H, W) of the images that a program takes."""
    if len(shape) != 4 or not all(isinstance(size, int) for size in shape[1:]):
        rule = f"takes {shorten(tuple(map(str, shape)))} and not images of one size (B, C, H, W)"
        raise DataError(f"{path}: {rule}")
    if isinstance(shape[0], int):
        rule = f"takes batches of {shape[0]} images only; export it for any number of them"
        raise DataError(f"{path}: {rule}")
    return shape[1], shape[2], shape[3]


def _open_onnx(path: Path) -> _Opened:
    if find_spec("onnxruntime") is None:
        raise VitnasError(f"{path}: onnxruntime is not installed (pip install vitnas[onnx])")
    try:
        session = session_of(path, torch.get_num_threads())
    except Exception as error:  # the library's own kinds
        raise _unreadable(path, "onnxruntime", error) from None
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type != "tensor(float)":
        found = ", ".join(f"{entry.name} {entry.type}" for entry in inputs) or "nothing"
        raise DataError(f"{path}: takes {found} and not images as one tensor(float)")
    return ask_with(session), tuple(inputs[0].shape)


def _open_pt2(path: Path) -> _Opened:
    try:
        with quiet():
            program: Any = torch.export.load(path)
    except Exception as error:  # zip's, json's, pickle's and torch's own kinds
        raise _unreadable(path, "torch.export", error) from None
    inputs = program.graph_signature.user_inputs
    if len(inputs) != 1:
        raise DataError(f"{path}: takes {len(inputs)} inputs and not images alone")
    taken = next(node for node in program.graph.nodes if node.name == inputs[0])
    return program.module(), tuple(getattr(taken.meta.get("val"), "shape", ()))


def _unreadable(path: Path, what: str, error: Exception) -> DataError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return DataError(f"{path}: {what} cannot read it: {shorten(printable(lines[0]))}")


_OPENERS = {".onnx": _open_onnx, ".pt2": _open_pt2}
RUNTIMES = {".onnx": "onnxruntime", ".pt2": "torch.export"}
"""What runs a file, by the end of its name."""
