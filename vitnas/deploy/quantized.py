"""A network's ONNX file in int8 and in fp16, made by onnxruntime's own tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from vitnas.exported.programs import quiet
from vitnas.scoring.programs import ask_with, session_of

_BATCH = 32


@dataclass
class Quantizer:
    """Writes int8 files of one network; it is calibrated once.

    Static quantization in QDQ form: weights are int8 with a scale for each output channel,
    activations int8 with the least and greatest value that the calibration images cause
    (`onnxruntime.quantization`, its defaults for QDQ; Jacob et al. 2018, Quantization and Training
    of Neural Networks, for the scheme). Weights take 7 of their 8 bits: x86 CPUs without VNNI add
    two products of 8 bits in 16 bits, and these overflow (onnxruntime's `reduce_range`).

    Args:
        model: the float file.
        folder: for files of its own.
        images: normalised images (n, C, H, W) float32 to calibrate on.
    """

    model: Path
    folder: Path
    images: Tensor

    def __post_init__(self) -> None:
        from onnxruntime.quantization.shape_inference import quant_pre_process

        self._ready = self.folder / "ready.onnx"
        with quiet():
            quant_pre_process(
                str(self.model),
                str(self._ready),
                skip_symbolic_shape=True,
                skip_optimization=True,  # it would rename the operators
            )

    def write(self, path: Path, *, only: Iterable[str] = (), without: Iterable[str] = ()) -> Path:
        """Write the network in int8.

        Args:
            path: the file.
            only: names of the operators that are int8; none: all that can be.
            without: names of those that stay in float.
        """
        from onnxruntime import quantization

        how: dict[str, Any] = {}
        if "calibration_cache_path" in inspect.signature(quantization.quantize_static).parameters:
            how["calibration_cache_path"] = self.folder / "ranges.json"
        with quiet():
            quantization.quantize_static(
                str(self._ready),
                str(path),
                _Reader(self.images),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                reduce_range=True,
                activation_type=quantization.QuantType.QInt8,
                weight_type=quantization.QuantType.QInt8,
                nodes_to_quantize=list(only),
                nodes_to_exclude=list(without),
                **how,
            )
        return path


class _Reader:
    """The images as onnxruntime asks for them: a batch at a time, then None."""

    def __init__(self, images: Tensor) -> None:
        self._batches: Iterator[Tensor] = iter(images.split(_BATCH))

    def get_next(self) -> dict[str, Any] | None:
        batch = next(self._batches, None)
        return None if batch is None else {"images": batch.numpy()}


def write_half(model: Path, path: Path) -> Path:
    """Write the network in fp16; its images and scores stay float32.

    The tool is `onnxruntime.transformers.float16`; operators without an fp16 form stay in float32.
    """
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with quiet():
        onnx.save(convert_float_to_float16(onnx.load(model), keep_io_types=True), str(path))
    return path


def computes_in_half(path: Path, folder: Path) -> bool:
    """Whether onnxruntime computes matrix products of an fp16 file in fp16 on this CPU.

    Where it has no such kernels it converts to float32 before them. This is seen in the graph that
    it runs: the file has the conversions of images and scores alone.

    Args:
        path: the fp16 file.
        folder: for a file of its own.
    """
    import onnx

    session_of(path, 1, optimized_model_filepath=str(folder / "run.onnx"))
    run, given = (_conversions(onnx.load(file)) for file in (folder / "run.onnx", path))
    return run <= given


def _conversions(proto: Any) -> int:
    return sum(node.op_type == "Cast" for node in proto.graph.node)


def run_with(path: Path, threads: int) -> Callable[[Tensor], Tensor]:
    """A function that runs a file: images (B, C, H, W) float32 -> scores (B, classes)."""
    return ask_with(session_of(path, threads))
