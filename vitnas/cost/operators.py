"""FLOPs of any module, counted operator by operator; the only importer of fvcore.

fvcore silently skips operators for which it has no handle, such as fused attention (deit_tiny
reads 1.080 G instead of 1.258 G). Here attention has a handle. Any other operator that is neither
counted nor known to be free is an error.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import nn

from vitnas.errors import VitnasError
from vitnas.nn.modes import evaluating

# Operators that count as free. fvcore itself skips reshaping, indexing, copying and relu, which are
# not repeated here.
HARMLESS = frozenset(
    f"aten::{name}"
    for name in (
        # element-wise: by fvcore's convention not counted
        *("add", "add_", "sub", "rsub", "mul", "div", "pow", "square", "exp", "gelu"),
        *("cos", "sin", "neg", "clamp_min", "ceil", "addcmul"),
        *("softmax", "sigmoid", "silu", "silu_", "hardswish", "hardswish_", "hardsigmoid"),
        "hardtanh",
        # sums, means and maxima
        *("sum", "col2im", "amax", "mean", "avg_pool2d", "max_pool2d", "adaptive_avg_pool1d"),
        *("cumsum", "linalg_vector_norm"),
        # moving and repeating
        *("pixel_unshuffle", "eye", "unflatten", "expand_as", "pad", "repeat", "view_as", "im2col"),
        *("meshgrid", "reshape_as"),
    )
)


class UncountedOperatorError(VitnasError):
    """A network uses an operator whose FLOPs are not known."""


def count_flops(model: nn.Module, input_shape: Sequence[int]) -> int:
    """FLOPs of one image through `model`; see `count_operators`."""
    return sum(count_operators(model, input_shape).values())


def count_operators(model: nn.Module, input_shape: Sequence[int]) -> Counter[str]:
    """FLOPs of one image through `model` in eval, by operator (`linear`, `conv`, `layer_norm` ...).

    Args:
        model: any network that takes a batch of images; its training mode is left as it was.
        input_shape: `(channels, height, width)` of an image.

    Raises:
        UncountedOperatorError: an operator is neither counted nor known to be free.
    """
    with warnings.catch_warnings(), evaluating(model):
        warnings.simplefilter("ignore")  # of the tracer, and of torch.jit's deprecation
        return _trace(model, input_shape)


def _trace(model: nn.Module, input_shape: Sequence[int]) -> Counter[str]:
    from fvcore.nn import FlopCountAnalysis  # importing it warns, too

    some = next(model.parameters(), torch.empty(0))
    images = torch.zeros(1, *input_shape, device=some.device, dtype=some.dtype)
    analysis = FlopCountAnalysis(model, (images,))
    analysis.set_op_handle("aten::scaled_dot_product_attention", _attention_flops)
    analysis.set_op_handle("aten::baddbmm", _matmul_flops)
    analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    counted = analysis.by_operator()
    unknown = sorted(set(analysis.unsupported_ops()) - HARMLESS)
    if unknown:
        raise UncountedOperatorError(
            f"no rule for counting the FLOPs of {', '.join(unknown)}: add a handle or, if it does "
            "no multiply-adds, its name to HARMLESS in vitnas/cost/operators.py"
        )
    return Counter({name: int(flops) for name, flops in counted.items()})


def _matmul_flops(inputs: list[Any], outputs: list[Any]) -> Counter[str]:
    """A B of `input + A B`, with A `(b, n, m)` and B `(b, m, p)`."""
    left, right = (tensor.type().sizes() for tensor in inputs[1:3])
    return Counter({"bmm": prod(left) * right[-1]})


def _attention_flops(inputs: list[Any], outputs: list[Any]) -> Counter[str]:
    """Q K^T and A V; query `(.., N, d)`, key `(.., M, d)`, value `(.., M, e)`."""
    query, key, value = (tensor.type().sizes() for tensor in inputs[:3])
    maps = prod(query[:-1]) * key[-2]
    return Counter({"attention": maps * (query[-1] + value[-1])})
