"""The common part of all attention mixers: heads, the map and its dropout, the projection."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.parts import MapActivation
from vitnas.nn.layers.activation import MAP_ACTIVATIONS
from vitnas.nn.layers.reattention import Reattention
from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.mixers.base import Place, TokenMixer

_MASKED = -6e4
"""A logit below all others, finite in half precision: a token alone in its group sees itself."""


class AttentionMixer(TokenMixer):
    """softmax(logits) V for h heads, then a projection. Subclasses compute the logits.

    V are the values `(B, h, N, d)`. By default attention is PyTorch's fused one, which does not
    build the map softmax(logits) `(B, h, N, N)`. The map is built for re-attention, for another
    activation than softmax, with a masked diagonal, or if `fused_attn` is False. Then it passes
    `attn_drop` and, if there is one, `reattention`, so a forward hook on these modules receives it.
    `attn_drop` and `fused_attn` are timm's names with timm's meaning.

    Sources: Vaswani et al.; the temperature tau is DeepViT's Eq. 4, logits / (tau sqrt(d)); other
    activations are SKA's Table 4, which has them for `cska` and does not say that a map is
    divided by its sums, so it is not.

    Args:
        dim: channels C.
        num_heads: heads h; head_dim d = A / h.
        width: channels A of query, key and value, all heads together; None: C.
        qk_scale: whether logits are divided by sqrt(d).
        tau: the temperature; None = it is learned and starts at 1.
        act: from logits to map: `softmax`, `gelu`, `relu` or `star_relu`.
        mask_diagonal: whether the logit of a token with itself is the lowest of all.
        attn_drop, proj_drop: dropout on the map (before re-attention), and after the projection.
        proj_bias: whether the projection has a bias.
        reattention: mixes the map across heads, or None.

    Attributes:
        fused_attn: whether fused attention may be used. Re-attention never uses it.
        normalized: whether the rows of a map have the sum 1, as those of a softmax have.

    Randomness: dropout, in training only.
    """

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
        self.mask_diagonal = mask_diagonal
        self.fused_attn = True
        self.attn_drop = nn.Dropout(attn_drop)
        self.reattention = reattention
        self.proj = nn.Linear(self.width, dim, bias=proj_bias)
        self.proj_drop = nn.Dropout(proj_drop)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Three `(B, h, N, d)` -> `(B, N, A)`."""
        fused = self.fused_attn and self.normalized and not self.mask_diagonal
        if self.reattention is not None or not fused:
            return self._apply_map(self._map_of(query, key), value)
        if self.tau is not None:
            query = query / self.tau
        drop = self.attn_drop.p if self.training else 0.0
        out = F.scaled_dot_product_attention(query, key, value, dropout_p=drop, scale=self.scale)
        return out.transpose(1, 2).flatten(2)

    def _map_of(self, query: Tensor, key: Tensor) -> Tensor:
        """Query and key `(B, h, N, d)` -> the map `(B, h, N, N)` that mixes the values."""
        return self._map(self._scaled(query) @ key.transpose(-2, -1))

    def _map(self, logits: Tensor) -> Tensor:
        """Scaled logits `(B, h, N, N)` -> the map that mixes the values."""
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
        """`(B, h, N, N)` and `(B, h, N, d)` -> `(B, N, A)`."""
        return (attention @ value).transpose(1, 2).flatten(2)

    def _split_heads(self, x: Tensor) -> Tensor:
        """`(B, N, A)` -> `(B, h, N, d)`."""
        return torch.unflatten(x, 2, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _project(self, mixed: Tensor) -> Tensor:
        out: Tensor = self.proj_drop(self.proj(mixed))
        return out

    @torch.no_grad()
    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """Without a softmax a map sums over all tokens, so the projection has to shrink it."""
        if self.normalized:
            return []
        return [Change(self.proj, "weight", old.tokens / new.tokens * self.proj.weight)]


def options_at(place: Place) -> dict[str, Any]:
    """The options of every attention at `place`, from the network and the stage."""
    config, stage = place.config, place.stage_config
    return {
        "width": stage.attn_width,
        "qk_scale": stage.qk_scale,
        "tau": tau_of(place),
        "act": stage.attn_act,
        "mask_diagonal": stage.mask_diagonal,
        "attn_drop": config.attn_drop_rate,
        "proj_drop": config.proj_drop_rate,
        "proj_bias": config.proj_bias,
        "reattention": _reattention_at(place),
    }


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
    return Reattention(
        stage.heads,
        wanted.norm,
        wanted.bias,
        wanted.scale,
        place.config.norm_eps,
        normalized=stage.attn_act == "softmax",
    )
