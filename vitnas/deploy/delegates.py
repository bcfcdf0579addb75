"""Which operators of a network the lists of three delegates do not have.

These are what the delegates' authors write down. Nothing is run here. Their conditions on single
operators (two-dimensional pooling, constant weights, static shapes ...) are not checked, so a
delegate may refuse more than these lists say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Delegate:
    """A delegate and its public list.

    Attributes:
        name: of it.
        reads: `onnx`, or `aten`: the names of its operators are ONNX's, or those of a program of
            torch.export.
        source: the list's place, with its version.
        takes: the operators of the list that a network of vitnas may have, or might.
    """

    name: str
    reads: Literal["onnx", "aten"]
    source: str
    takes: frozenset[str]

    def refused(self, operators: Mapping[str, int]) -> dict[str, int]:
        """Those of the operators that the list does not have, with their number."""
        return {name: number for name, number in operators.items() if name not in self.takes}


_XNNPACK = """
abs add addmm avg_pool2d _native_batch_norm_legit_no_training bmm cat ceil constant_pad_nd
convolution cos clamp div exp floor gelu hardtanh hardswish leaky_relu linear log max maximum
max_pool2d mean minimum mm mul neg permute pow prelu rsqrt relu tanh sigmoid sin slice _softmax
sqrt sub upsample_bilinear2d view
"""
_COREML = """
Add AveragePool Cast Clip Concat Conv ConvTranspose Cos DepthToSpace Ceil Div Elu Erf Exp GatherND
Gemm Gelu GlobalAveragePool GlobalMaxPool GridSample GroupNormalization HardSigmoid Identity
InstanceNormalization LayerNormalization LeakyRelu MatMul MaxPool Max Mul Pow PRelu Range
Reciprocal ReduceSum ReduceMean ReduceMax Relu Reshape Resize Round Shape Sin Slice Softplus Split
Sub Sigmoid Softmax Sqrt Squeeze Tanh Tile Transpose Unsqueeze
"""
_TENSORRT = """
Abs Add And AveragePool BatchNormalization Cast CastLike Ceil Clip Concat Constant ConstantOfShape
Conv ConvTranspose Cos CumSum DepthToSpace DequantizeLinear Div Einsum Elu Equal Erf Exp Expand
Flatten Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool Greater
GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Identity InstanceNormalization
IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max MaxPool Mean Min Mod
Mul Neg Not Or Pad Pow PRelu QuantizeLinear Range Reciprocal ReduceL1 ReduceL2 ReduceMax
ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize Round ScatterND Selu
Shape Sigmoid Sign Sin Size Slice Softmax Softplus SpaceToDepth Split Sqrt Squeeze Sub Sum Tanh
Tile Transpose Unsqueeze Where
"""

DELEGATES = (
    Delegate(
        "XNNPACK",
        "aten",
        "pytorch/executorch, backends/xnnpack/partition/config: ALL_PARTITIONER_CONFIGS in "
        "__init__.py (0084e2e7), and view_copy and cos of generic_node_configs.py (0489cf30)",
        frozenset(_XNNPACK.split()),
    ),
    Delegate(
        "CoreML",
        "onnx",
        "microsoft/onnxruntime, tools/ci_build/github/apple/coreml_supported_mlprogram_ops.md "
        "(04f568d8; onnxruntime's CoreML provider, ML programs)",
        frozenset(_COREML.split()),
    ),
    Delegate(
        "TensorRT",
        "onnx",
        "onnx/onnx-tensorrt, docs/operators.md (TensorRT 10.15)",
        frozenset(_TENSORRT.split()),
    ),
)

_NO_WORK = {"getitem", "alias", "clone", "detach", "sym_size"}
"""Nodes of a program that compute nothing: they are not handed to a delegate as such."""


def aten_operators(network: nn.Module, shape: tuple[int, int, int]) -> dict[str, int]:
    """The core ATen operators of a network with their number, the most frequent first.

    Args:
        network: in eval mode on the CPU.
        shape: (C, H, W) of its images; a batch has one, as on a phone.
    """
    import torch

    from vitnas.exported.programs import quiet

    with quiet(), torch.no_grad():
        program = torch.export.export(network, (torch.zeros(1, *shape),)).run_decompositions()
    names = (
        getattr(node.target, "__name__", str(node.target)).split(".")[0]
        for node in program.graph.nodes
        if node.op == "call_function"
    )
    return dict(Counter(sorted(name for name in names if name not in _NO_WORK)).most_common())


def lint(
    aten: Mapping[str, int], onnx: Mapping[str, int], delegates: Iterable[Delegate] = DELEGATES
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """By delegate: the operators that its list does not have, and how many there are in all."""
    read = {"aten": aten, "onnx": onnx}
    refused = {one.name: one.refused(read[one.reads]) for one in delegates}
    return refused, {one.name: sum(read[one.reads].values()) for one in delegates}
