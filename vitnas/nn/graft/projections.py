"""The projections to query and value of an attention of timm, however it stores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from timm.models.eva import EvaAttention
from timm.models.pvt_v2 import Attention as ReducedAttention
from torch import Tensor, nn


class Projections(NamedTuple):
    """Weights `(A, C)` and biases `(A,)` of query and value, and which of them learn.

    Attributes:
        weight, bias: of the query, then of the value; no biases where the attention has none.
        learns: whether weights and biases require a gradient, by name.
    """

    weight: tuple[Tensor, Tensor]
    bias: tuple[Tensor, Tensor] | None
    learns: dict[str, bool]


def projections_of(attention: Any) -> Projections:
    """Those of an attention; they share its memory."""
    found = (of for kind, of in _OF.items() if isinstance(attention, kind))
    return next(found, _of_thirds)(attention)


def _of_thirds(attention: Any) -> Projections:
    """One linear layer gives query, key and value, in this order."""
    weight, bias = attention.qkv.weight, attention.qkv.bias
    learns = {"weight": weight.requires_grad, "bias": bias is not None and bias.requires_grad}
    return Projections(_ends(weight), None if bias is None else _ends(bias), learns)


def _of_eva(attention: EvaAttention) -> Projections:
    """One linear layer, and biases of query and value alone."""
    assert attention.qkv is not None
    weight = attention.qkv.weight
    learns = {"weight": weight.requires_grad, "bias": False}
    if attention.q_bias is None or attention.v_bias is None:
        return Projections(_ends(weight), None, learns)
    learns["bias"] = attention.q_bias.requires_grad
    return Projections(_ends(weight), (attention.q_bias, attention.v_bias), learns)


def _of_reduced(attention: ReducedAttention) -> Projections:
    """A linear layer for the query, and one for key and value."""
    query, both = attention.q, attention.kv
    learns = {"weight": query.weight.requires_grad, "bias": False}
    weight = query.weight, both.weight.chunk(2)[1]
    if query.bias is None:
        return Projections(weight, None, learns)
    learns["bias"] = query.bias.requires_grad
    return Projections(weight, (query.bias, both.bias.chunk(2)[1]), learns)


def _ends(tensor: Tensor) -> tuple[Tensor, Tensor]:
    query, _, value = tensor.chunk(3)
    return query, value


_OF: dict[type[nn.Module], Callable[[Any], Projections]] = {
    EvaAttention: _of_eva,
    ReducedAttention: _of_reduced,
}
