"""A network's ONNX file in int8, made by onnxruntime's own tools."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitnas.exported.programs import quiet, write_onnx
from vitnas.exported.runtime import run_with

CALIBRATION = 256
"""Training images that int8 is calibrated on."""
_BATCH = 32
_HIDDEN = -50.0
"""A logit so much lower than the others has no share in a softmax."""
_MOVING = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")


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
        self._left = _in_float(self._ready)

    def write(self, path: Path, *, only: Iterable[str] = (), without: Iterable[str] = ()) -> Path:
        """Write the network in int8.

        Args:
            path: the file.
            only: names of the operators that are int8; none: all that can be.
            without: names of those that stay in float; so do masked logits with their softmax, of
                which int8 would leave nothing but the mask, and the product of the class token's
                query and its static key (`cska`), which onnxruntime cannot multiply in int8.
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
                nodes_to_exclude=[*without, *self._left],
                **how,
            )
        return path


def _in_float(file: Path) -> list[str]:
    """The names of the operators that int8 does not suit."""
    import onnx

    graph = onnx.load(file).graph
    return [*_products_with_stacks(graph), *_masks(graph)]


def _products_with_stacks(graph: Any) -> list[str]:
    """The names of the operators that multiply by several fixed matrices.

    With a scale for each channel, onnxruntime writes these in int8 and cannot run them.
    """
    stacks = {tensor.name for tensor in graph.initializer if len(tensor.dims) > 2}
    products = (node for node in graph.node if node.op_type == "MatMul")
    return [node.name for node in products if node.input[1] in stacks]


def _masks(graph: Any) -> list[str]:
    """The names of the operators that hide logits, and of those that take these: the softmax, and
    what moves them before it."""
    from onnx import numpy_helper

    kept = (one for one in graph.initializer if one.data_type == one.FLOAT)
    arrays = ((one.name, numpy_helper.to_array(one)) for one in kept)
    masks = {name for name, array in arrays if array.size and array.min() < _HIDDEN}
    masked: set[str] = set()
    names = []
    for node in graph.node:  # each after those that it takes from
        hides = node.op_type in ("Add", "Where") and not masks.isdisjoint(node.input)
        if hides or not masked.isdisjoint(node.input):
            names.append(node.name)
            if hides or node.op_type in _MOVING:
                masked.update(node.output)
    return names


class _Reader:
    """The images as onnxruntime asks for them: a batch at a time, then None."""

    def __init__(self, images: Tensor) -> None:
        self._batches: Iterator[Tensor] = iter(images.split(_BATCH))

    def get_next(self) -> dict[str, Any] | None:
        batch = next(self._batches, None)
        return None if batch is None else {"images": batch.numpy()}


class InInt8(nn.Module):
    """A network in int8: images (B, C, H, W) float32 -> scores (B, classes), both on the CPU.

    onnxruntime runs it with as many threads as torch has now.

    Args:
        network: in float, on any device and in any mode; it is left as it is.
        images: normalised images (n, C, H, W) float32 to calibrate on; see `Quantizer`.

    Raises:
        VitnasError: PyTorch cannot export it.
    """

    def __init__(self, network: nn.Module, images: Tensor) -> None:
        super().__init__()
        with tempfile.TemporaryDirectory(prefix="vitnas.") as place:
            folder = Path(place)
            write_onnx(network, images.shape[1:], folder / "model.onnx")
            quantizer = Quantizer(folder / "model.onnx", folder, images.cpu())
            path = quantizer.write(folder / "int8.onnx")
            self._run = run_with(path, torch.get_num_threads())

    def forward(self, images: Tensor) -> Tensor:
        return self._run(images)
