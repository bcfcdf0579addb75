"""The common part of all attention mixers: heads, the map and its dropout, the projection."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vitnas.config.parts import MapActivation
from vitnas.nn.layers.activation import MAP_ACTIVATIONS
from vitnas.nn.layers.convolved import Convolutions, ConvolvedTokens
from vitnas.nn.layers.fused import fused_attention, map_is_faster
from vitnas.nn.layers.reattention import Reattention
from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.base import Place, TokenMixer

_MASKED = -6e4
"""A logit below all others, finite in half precision: a token alone in its group sees itself."""


class AttentionMixer(TokenMixer):
    """softmax(logits) V for h heads, then a projection. Subclasses compute the logits.

    V are the values `(B, h, M, d)`, where M is N unless keys and values are convolved with a
    stride. By default attention is PyTorch's fused one, which does not
    build the map softmax(logits) `(B, h, N, M)`. The map is built for re-attention, for another
    activation than softmax, with a masked diagonal, or if `fused_attn` is False. Then it passes
    `attn_drop` and, if there is one, `reattention`, so a forward hook on these modules receives it.
    In training on a CPU it is also built where that is faster (`map_is_faster`).
    `attn_drop` and `fused_attn` are timm's names with timm's meaning.

    Sources: Vaswani et al.; the temperature tau is DeepViT's Eq. 4, logits / (tau sqrt(d)); other
    activations are SKA's Table 4, which has them for `cska` and does not say that a map is
    divided by its sums, so it is not; convolutions before the projections are CvT's
    (`ConvolvedTokens`).

    Args:
        dim: channels C.
        num_heads: heads h; head_dim d = A / h.
        width: channels A of query, key and value, all heads together; None: C.
        qk_scale: whether logits are divided by sqrt(d).
        tau: the temperature; None = it is learned and starts at 1.
        act: from logits to map: `softmax`, `gelu`, `relu` or `star_relu`.
        mask_diagonal: whether the logit of a token with itself is the lowest of all; without
            effect where the keys have a stride.
        convolutions: before the projections, or None.
        attn_drop, proj_drop: dropout on the map (before re-attention), and after the projection.
        proj_bias: whether the projection has a bias.
        reattention: mixes the map across heads, or None.

    Attributes:
        convolved: what has a convolution of its own, with `convolutions`: query, key, value.
        fused_attn: whether fused attention may be used. Re-attention never uses it.
        normalized: whether the rows of a map have the sum 1, as those of a softmax have.

    Randomness: dropout, in training only.
    """

    convolved: ClassVar[tuple[str, ...]] = ("query", "key", "value")

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        width: int | None = None,
        qk_scale: bool = True,
        tau: float | None = 1.0,
        act: MapActivation = "softmax",
        mask_diagonal: bool = False,
        convolutions: Convolutions | None = None,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        proj_bias: bool = True,
        reattention: Reattention | None = None,
    ) -> None:
        super().__init__()
        self.width = width or dim
        self.num_heads, self.head_dim = num_heads, self.width // num_heads
        self.scale = (self.head_dim**-0.5 if qk_scale else 1.0) / (tau or 1.0)
        self.tau: nn.Parameter | None = None if tau else nn.Parameter(torch.ones(1))
        kind = MAP_ACTIVATIONS[act]
        self.normalized, self.act = kind is None, kind and kind()
        self.convolutions, self.convs = convolutions, nn.ModuleDict()
        self.has_fewer_keys = convolutions is not None and convolutions.stride > 1
        self.mask_diagonal = mask_diagonal and not self.has_fewer_keys
        for name in self.convolved if convolutions else ():
            assert convolutions is not None
            stride = 1 if name == "query" else convolutions.stride
            self.convs[name] = ConvolvedTokens(dim, convolutions, stride)
        self.fused_attn = True
        self.attn_drop = nn.Dropout(attn_drop)
        self.reattention = reattention
        self.proj = nn.Linear(self.width, dim, bias=proj_bias)
        self.proj_drop = nn.Dropout(proj_drop)

    def _input(self, name: str, x: Tensor, grid: Grid, pass_index: int) -> Tensor:
        """What is projected to query, key or value: the tokens, or these convolved."""
        if not self.convs:
            return x
        out: Tensor = self.convs[name](x, grid, pass_index)
        return out

    def _keys_of(self, tokens: TokenLayout) -> TokenLayout:
        """The layout of keys and values."""
        return self.convolutions.keys(tokens) if self.convolutions else tokens

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Query `(B, h, N, d)`, key and value `(B, h, M, d)` -> `(B, N, A)`."""
        fused = self.fused_attn and self.normalized and not self.mask_diagonal
        if fused and self.training:  # in eval the graph stays plain, for exports and counts
            fused = not map_is_faster(key)
        if self.reattention is not None or not fused:
            return self._apply_map(self._map_of(query, key), value)
        if self.tau is not None:
            query = query / self.tau
        drop = self.attn_drop.p if self.training else 0.0
        out = fused_attention(
            query, key, value, scale=self.scale, dropout_p=drop, pad=self.training
        )
        return out.transpose(1, 2).flatten(2)

    def _map_of(self, query: Tensor, key: Tensor) -> Tensor:
        """Query `(B, h, N, d)`, key `(B, h, M, d)` -> the map `(B, h, N, M)`."""
        return self._map(self._scaled(query) @ key.transpose(-2, -1))

    def _map(self, logits: Tensor) -> Tensor:
        """Scaled logits `(B, h, N, M)` -> the map that mixes the values."""
        if self.mask_diagonal:
            own = torch.eye(logits.shape[-1], dtype=torch.bool, device=logits.device)
            logits = logits.masked_fill(own, _MASKED)
        shares = logits.softmax(dim=-1) if self.act is None else self.act(logits)
        attention: Tensor = self.attn_drop(shares)
        return attention if self.reattention is None else self.reattention(attention)

    def _scaled(self, x: Tensor) -> Tensor:
        """Queries or logits, multiplied by the scale and divided by the temperature."""
        x = self.scale * x
        return x if self.tau is None else x / self.tau

    def _apply_map(self, attention: Tensor, value: Tensor) -> Tensor:
        """`(B, h, N, M)` and `(B, h, M, d)` -> `(B, N, A)`."""
        return (attention @ value).transpose(1, 2).flatten(2)

    def _split_heads(self, x: Tensor) -> Tensor:
        """`(B, N, A)` -> `(B, h, N, d)`."""
        return torch.unflatten(x, 2, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _project(self, mixed: Tensor) -> Tensor:
        out: Tensor = self.proj_drop(self.proj(mixed))
        return out

    @torch.no_grad()
    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """Without a softmax a map sums over all keys, so the projection has to shrink it. With one,
        its entries get smaller, which re-attention has to know."""
        before, after = self._keys_of(old), self._keys_of(new)
        if not self.normalized:
            share = before.tokens / after.tokens
            return [Change(self.proj, "weight", share * self.proj.weight)]
        return [] if self.reattention is None else self.reattention.resized(before, after)


def options_at(place: Place) -> dict[str, Any]:
    """The options of every attention at `place`, from the network and the stage."""
    config, stage = place.config, place.stage_config
    return {
        "width": stage.attn_width,
        "qk_scale": stage.qk_scale,
        "tau": tau_of(place),
        "act": stage.attn_act,
        "mask_diagonal": stage.mask_diagonal,
        "convolutions": _convolutions_at(place),
        "attn_drop": config.attn_drop_rate,
        "proj_drop": config.proj_drop_rate,
        "proj_bias": config.proj_bias,
        "reattention": _reattention_at(place),
    }


def _convolutions_at(place: Place) -> Convolutions | None:
    stage = place.stage_config
    if not stage.qkv_kernel:
        return None
    prefix = place.config.num_prefix_tokens
    return Convolutions(stage.qkv_kernel, stage.key_stride, prefix, stage.passes)


def tau_of(place: Place) -> float | None:
    """Temperature of the attention at `place`; None = it is learned (DeepViT, Eq. 4).

    `linear` falls from 1 in the network's first attention block to `last` in its last one.
    """
    temperature = place.config.temperature
    if temperature.kind == "learnable":
        return None
    first, last = place.config.attention_span
    if temperature.kind == "none" or first == last:
        return 1.0
    return 1.0 + (temperature.last - 1.0) * (place.block - first) / (last - first)


def _reattention_at(place: Place) -> Reattention | None:
    if not place.reattention:
        return None
    wanted, stage = place.config.reattention, place.stage_config
    return Reattention(stage.heads, wanted.norm, wanted.bias, wanted.scale, wanted.norm_eps)
