"""Attention maps that must not be alike: the similarity penalty of DeepViT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity


@contextmanager
def recorded_maps(model: nn.Module) -> Iterator[list[Tensor]]:
    """Inside, every forward pass appends its attention maps to the list, in order of execution.

    Works on vitnas's attention mixers and on timm's attention modules, which have the same names.
    Fused attention is off inside, so that each map passes through `attn_drop`, and through
    `reattention` if there is one. The output of the last of these is recorded. Maps are
    `(B, h, N, N)` with their gradients; a pass with g > 1 gives `(B * g, h, N / g, N / g)`.
    """
    maps: list[Tensor] = []
    with ExitStack() as stack:
        for module in attention_modules(model):
            stack.callback(setattr, module, "fused_attn", module.fused_attn)
            module.fused_attn = False
            last = getattr(module, "reattention", None) or module.attn_drop
            assert isinstance(last, nn.Module)
            stack.enter_context(_appending(last, maps))
        yield maps


@contextmanager
def _appending(module: nn.Module, maps: list[Tensor]) -> Iterator[None]:
    handle = module.register_forward_hook(lambda _module, _args, output: maps.append(output))
    try:
        yield
    finally:
        handle.remove()


def attention_modules(model: nn.Module) -> list[Any]:
    """The modules of `model` with a map that a hook on `attn_drop` or `reattention` can see."""
    return [
        module
        for module in model.modules()
        if hasattr(module, "fused_attn")
        and isinstance(getattr(module, "attn_drop", None), nn.Module)
    ]


def map_similarity(one: Tensor, other: Tensor) -> Tensor:
    """Mean over images, heads and tokens t of the cosine of `one[h, :, t]` and `other[h, :, t]`.

    Source: DeepViT, Eq. 2: column t of a map says what token t gives to every other token.

    Args:
        one, other: maps `(B, h, N, N)`; rows are the tokens that receive.

    Returns:
        A scalar, -1 to 1; 1 where every token plays the same part in both.
    """
    return cosine_similarity(one.float(), other.float(), dim=-2).mean()


def similarity_penalty(maps: Sequence[Tensor], blocks: int, batch: int) -> Tensor:
    """Sum over l = 0..blocks of the similarity of maps l and l + 1.

    Source: DeepViT, Eq. 6, to be multiplied by its lambda. The sum is taken as printed: B + 1
    pairs, from the first layer on, as far as the network goes. A pair whose maps have other sizes,
    or do not span whole images (token groups), is left out.

    Args:
        maps: of one forward pass, in order of execution.
        blocks: the paper's B.
        batch: number of images.

    Returns:
        A scalar, from -(blocks + 1) to blocks + 1; 0 without any pair.
    """
    pairs = list(pairwise(maps))[: blocks + 1]
    found = [
        map_similarity(one, other)
        for one, other in pairs
        if one.shape == other.shape and one.shape[0] == batch
    ]
    return torch.stack(found).sum() if found else torch.zeros(())
