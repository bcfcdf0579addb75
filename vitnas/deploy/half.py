"""A network's ONNX file in fp16, made by onnxruntime's own tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from vitnas.exported.programs import quiet
from vitnas.exported.runtime import ask_with, session_of

_WITHOUT = ("NchwcTransformer",)
"""onnxruntime 1.31 crashes in it on fp16 files of networks in token groups; it serves float32."""


def write_half(model: Path, path: Path) -> Path:
    """Write the network in fp16; its images and scores stay float32.

    The tool is `onnxruntime.transformers.float16`; operators without an fp16 form stay in float32.
    """
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with quiet():
        onnx.save(convert_float_to_float16(onnx.load(model), keep_io_types=True), str(path))
    return path


def run_half(path: Path, threads: int) -> Callable[[Tensor], Tensor]:
    """A function that runs an fp16 file: images (B, C, H, W) float32 -> scores (B, classes)."""
    return ask_with(session_of(path, threads, without=_WITHOUT))


def computes_in_half(path: Path, folder: Path) -> bool:
    """Whether onnxruntime computes matrix products of an fp16 file in fp16 on this CPU.

    Where it has no such kernels it converts to float32 before them. This is seen in the graph that
    it runs: the file has the conversions of images and scores alone.

    Args:
        path: the fp16 file.
        folder: for a file of its own.
    """
    import onnx

    session_of(path, 1, without=_WITHOUT, optimized_model_filepath=str(folder / "run.onnx"))
    run, given = (_conversions(onnx.load(file)) for file in (folder / "run.onnx", path))
    return run <= given


def _conversions(proto: Any) -> int:
    return sum(node.op_type == "Cast" for node in proto.graph.node)
