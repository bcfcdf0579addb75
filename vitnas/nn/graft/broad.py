"""Broad attention on a network of timm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from timm.models.swin_transformer import SwinTransformerBlock, window_reverse
from torch import Tensor, nn

from vitnas.config.parts import BroadConfig
from vitnas.errors import VitnasError
from vitnas.nn.broad import BroadAttention, LayerShape
from vitnas.nn.graft.atrous import Atrous, AtrousAttention
from vitnas.nn.graft.attention import Site, StaticKeyGraft
from vitnas.nn.graft.reduced import Reduction
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers import Tap

Projected = Tensor | tuple[Tensor, ...]
"""What a projection gives: query, key and value side by side, or each for itself."""


def core(attention: Any) -> Any:
    """The module that has the heads and projections: a graft's mixer, or timm's attention."""
    return attention.mixer if isinstance(attention, StaticKeyGraft) else attention


def source_of(site: Site) -> LayerShape:
    """An attention's shape: the grid of its whole stage, its heads and its channels."""
    inner = core(site.attention)
    keys = fewer_keys(site)
    return LayerShape(site.stage_grid, inner.num_heads, inner.proj.in_features, keys)


def fewer_keys(site: Site) -> Grid | None:
    """The grid of keys and values where an attention has fewer of them than queries."""
    inner = core(site.attention)
    if isinstance(inner, AtrousAttention):
        reduction = Reduction(inner)
    elif isinstance(inner, Atrous):
        reduction = inner.reduction
    else:
        return None
    keys = reduction.after(site.stage_grid)
    return None if keys == site.stage_grid else keys


def width_of(site: Site) -> int:
    """Channels of the block around an attention."""
    width: int = core(site.attention).proj.out_features
    return width


class BroadGraft(nn.Module):
    """Adds gamma times broad attention to the output of the last block, before the final norm.

    Source: BViT, Eq. 5 to 8, as `vitnas.nn.broad.BroadAttention` computes them. Queries, keys and
    values are the outputs of the attentions' own projections. The key of a `ska` graft is its
    static key. In Swin, tokens return from their windows to their places in the picture.

    Forward hooks collect and add, so no module of the network changes its name. A copy of the
    network has its own hooks.

    Args:
        sites: the attentions that broad attention collects from.
        last: the network's last attention; the feature is added to its block's output.
        config: `broad` as in a model file, with gamma above 0.
    """

    def __init__(self, sites: Sequence[Site], last: Site, config: BroadConfig) -> None:
        super().__init__()
        self.sites = tuple(sites)
        sources = [source_of(site) for site in sites]
        self.attention = BroadAttention(
            config.gamma,
            LayerShape(last.stage_grid, sources[-1].num_heads, width_of(last)),
            sources,
            pool=config.pool,
            scale=config.scale,
            with_v=config.with_v,
            with_qk=config.with_qk,
        )
        self.taps: dict[int, Tap] = {}
        for index, site in enumerate(sites):
            projection_of(site.attention).register_forward_hook(partial(self.collect, index))
        last.block.register_forward_hook(self.finish)

    def collect(self, index: int, module: nn.Module, inputs: Any, projected: Projected) -> None:
        """Hook on a projection: keep the attention's query, key and value, of its last pass."""
        self.taps[index] = tap(self.sites[index], projected)

    def finish(self, module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        """Hook on the last block: add the broad feature to its output.

        `output` is tokens `(B, N, C)` or a picture `(B, H, W, C)`.

        Raises:
            VitnasError: an attention has not run in this pass, e.g. with gradient checkpointing.
        """
        taps, self.taps = self.taps, {}
        if len(taps) < len(self.sites):
            raise VitnasError(
                f"broad attention needs all {len(self.sites)} attentions in one pass and saw "
                f"{len(taps)}: turn gradient checkpointing off"
            )
        collected = [taps[index] for index in sorted(taps)]
        if output.ndim == 3:
            return self._add(output, collected)
        return torch.unflatten(self._add(output.flatten(1, 2), collected), 1, output.shape[1:3])

    def _add(self, tokens: Tensor, collected: list[Tap]) -> Tensor:
        out: Tensor = self.attention(tokens, collected)
        return out


def projection_of(attention: Any) -> nn.Module:
    """The module that gives query, key and value; of a graft query and value alone."""
    inner = core(attention)
    if isinstance(inner, (Atrous, AtrousAttention)):
        return inner.parts
    found: nn.Module = inner.qv if isinstance(attention, StaticKeyGraft) else inner.qkv
    return found


def tap(site: Site, projected: Projected) -> Tap:
    """Query `(B, h, N, d)`, key and value `(B, h, M, d)` from the output of `projection_of`."""
    inner, is_graft = core(site.attention), isinstance(site.attention, StaticKeyGraft)
    if isinstance(projected, Tensor):
        projected = projected.chunk(2 if is_graft else 3, dim=-1)
    if is_graft:
        query, value = projected
        key = inner.key_of_grid(site.grid).expand_as(value)
    else:
        query, key, value = projected
    if isinstance(site.block, SwinTransformerBlock):
        query, key, value = (from_windows(part, site.block) for part in (query, key, value))
    heads = (torch.unflatten(part, 2, (inner.num_heads, -1)) for part in (query, key, value))
    return Tap(*(part.transpose(1, 2) for part in heads))


def from_windows(x: Tensor, block: SwinTransformerBlock) -> Tensor:
    """Tokens from windows to the order of the picture.

    `(B * w, N, C)` -> `(B, H * W, C)`, for w windows of N tokens in an image.
    """
    (height, width), (window_h, window_w) = block.input_resolution, block.window_size
    padded = [height + -height % window_h, width + -width % window_w]
    picture = window_reverse(torch.unflatten(x, 1, block.window_size), block.window_size, *padded)
    picture = picture[:, :height, :width].roll(block.shift_size, dims=(1, 2))
    tokens: Tensor = picture.flatten(1, 2)
    return tokens
