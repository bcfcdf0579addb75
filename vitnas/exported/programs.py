"""model.pt2 and model.onnx: a network as a program that needs no Python of ours."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.errors import VitnasError, printable, shorten

if TYPE_CHECKING:
    from torch import nn

    from vitnas.nn.model import HybridTransformer

OPSET = 20
"""Of model.onnx."""

SCOPES = "pkg.torch.onnx.name_scopes"
"""A note on each node of model.onnx: the modules that it is from, as the text of a list."""

_PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def write_programs(
    folder: Path, network: HybridTransformer, formats: tuple[str, ...]
) -> dict[str, str]:
    """Write model.pt2 and model.onnx with any number of images a batch.

    Args:
        folder: there is nothing else of these names.
        network: in eval mode on the CPU.
        formats: `pt2` and `onnx`, or one of them.

    Returns:
        Why a file was left out, by its name.
    """
    wanted = [name for name in ("pt2", "onnx") if name in formats]
    left_out = {}
    if "onnx" in wanted and (missing := without_onnx()):
        wanted.remove("onnx")
        left_out["model.onnx"] = missing
    if not wanted:
        return left_out
    with quiet():
        try:
            program = _traced(network, (network.in_chans, *network.image_hw))
        except Exception as error:  # PyTorch's exporter has kinds of its own
            return {**left_out, **{f"model.{name}": _why(error) for name in wanted}}
        for name in wanted:
            try:
                _WRITERS[name](program, folder / f"model.{name}")
            except Exception as error:
                (folder / f"model.{name}").unlink(missing_ok=True)
                left_out[f"model.{name}"] = _why(error)
    return left_out


def without_onnx() -> str:
    """Which packages are missing for model.onnx, with the command; empty where none is."""
    missing = [package for package in _PACKAGES if find_spec(package) is None]
    return f"{' and '.join(missing)} not installed (pip install vitnas[onnx])" if missing else ""


def write_onnx(network: nn.Module, shape: Sequence[int], path: Path) -> None:
    """Write any network as an .onnx file with any number of images a batch.

    Args:
        network: on any device and in any mode; it is left as it is.
        shape: (C, H, W) of its images.
        path: the file.

    Raises:
        VitnasError: PyTorch cannot export it.
    """
    import torch

    with quiet(), torch.no_grad(), torch.autocast("cuda", enabled=False):
        try:
            _write_onnx(_traced(deepcopy(network).cpu().eval(), shape), path)
        except Exception as error:  # PyTorch's exporter has kinds of its own
            raise VitnasError(_why(error)) from None


def _traced(network: nn.Module, shape: Sequence[int]) -> Any:
    import torch

    images = torch.zeros(2, *shape)
    batch = torch.export.Dim("batch")
    return torch.export.export(network, (images,), dynamic_shapes=({0: batch},))


def _write_pt2(program: Any, path: Path) -> None:
    import torch

    torch.export.save(program, path)


def _write_onnx(program: Any, path: Path) -> None:
    import torch

    written: Any = torch.onnx.export(
        program,
        dynamo=True,
        opset_version=OPSET,
        input_names=["images"],
        output_names=["scores"],
        verbose=False,
    )
    for node in written.model.graph:
        for note in set(node.metadata_props) - {SCOPES}:  # lines of code with paths, half the file
            del node.metadata_props[note]
    written.save(str(path))


_WRITERS = {"pt2": _write_pt2, "onnx": _write_onnx}


def _why(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"PyTorch cannot export it: {shorten(printable(lines[0]))}"


@contextmanager
def quiet() -> Iterator[None]:
    """Without the exporters' own messages."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
