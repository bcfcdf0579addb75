"""Multi-head self-attention, whole or in token groups, with or without re-attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.model import ReattentionConfig
from vitnas.nn.layers.reattention import Reattention
from vitnas.nn.layers.shuffle import TokenShuffle
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class MultiHeadSelfAttention(TokenMixer):
    """softmax(Q K^T / sqrt(d)) V for h heads, then a projection.

    Sources: Vaswani et al.; group attention is SReT, Section 4 and Algorithm 1; re-attention is
    DeepViT, Eq. 3.

    A pass with g > 1 permutes the tokens, attends inside g groups of N/g and inverts the
    permutation in the same pass. Algorithm 1 inverts in the second pass only and so adds a
    shuffled branch to an unshuffled residual; `permute="second"` is the official code's form:
    contiguous windows in the first pass, permuted and inverted in later ones. g = 1 never
    permutes, because attention does not see the order.

    With re-attention the map is built and mixed across heads; else attention is PyTorch's fused
    one, which never holds the map.

    Args:
        dim: channels C.
        num_heads: heads h; d = C / h.
        num_tokens: N, class token included; of use only to fix the permutations of eval.
        groups: g of each pass; each divides N.
        permute: `always` (every pass with g > 1), `second` or `never` (contiguous windows).
        block: index of the block in the network; seeds the permutations of eval.
        qkv_bias, proj_bias: whether the linear layers have one.
        qk_scale: whether logits are divided by sqrt(d).
        reattention: how the maps are mixed, or None.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    MACs: ``N * (4 * C**2 + 2 * N * C / g + r * h**2 * N)``; r is 1 with re-attention, else 0.
    Randomness: permutations, in training only (see `TokenShuffle`).
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_tokens: int,
        *,
        groups: Sequence[int] = (1,),
        permute: Literal["always", "second", "never"] = "always",
        block: int = 0,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        qk_scale: bool = True,
        reattention: ReattentionConfig | None = None,
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.groups = tuple(groups)
        self.scale = self.head_dim**-0.5 if qk_scale else 1.0
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.reattention: Reattention | None = None
        if reattention is not None:
            self.reattention = Reattention(num_heads, reattention.norm, reattention.bias)
        first = {"always": 0, "second": 1, "never": len(self.groups)}[permute]
        self.shuffles = nn.ModuleDict(
            {
                str(passed): TokenShuffle(num_tokens, block, passed)
                for passed, number in enumerate(self.groups)
                if number > 1 and passed >= first
            }
        )

    @classmethod
    def at(cls, place: Place) -> MultiHeadSelfAttention:
        config, stage = place.config, place.stage_config
        return cls(
            stage.embed_dim,
            stage.heads,
            place.num_tokens,
            groups=stage.groups,
            permute=config.permute,
            block=place.block,
            qkv_bias=config.qkv_bias,
            proj_bias=config.proj_bias,
            qk_scale=stage.qk_scale,
            reattention=config.reattention if place.reattention else None,
        )

    def forward(
        self, x: Tensor, grid: Grid, passed: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        qkv = torch.unflatten(self.qkv(x), 2, (3, self.num_heads, self.head_dim))  # (B, N, 3, h, d)
        if taps is not None:
            taps.append(Tap(*qkv.permute(2, 0, 3, 1, 4).unbind(0)))
        number = self.groups[passed]
        mixed = self._attend(qkv) if number == 1 else self._attend_groups(qkv, passed)
        out: Tensor = self.proj(mixed)
        return out

    def _attend(self, qkv: Tensor) -> Tensor:
        """`(B, N, 3, h, d)` -> `(B, N, C)`: every token sees every other."""
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        if self.reattention is None:
            out = F.scaled_dot_product_attention(query, key, value, scale=self.scale)
        else:
            attention = (self.scale * query @ key.transpose(-2, -1)).softmax(dim=-1)
            out = self.reattention(attention) @ value
        return out.transpose(1, 2).flatten(2)

    def _attend_groups(self, qkv: Tensor, passed: int) -> Tensor:
        """As `_attend`, inside g groups, which are folded into the batch."""
        number, name = self.groups[passed], str(passed)
        if name not in self.shuffles:
            return self._attend_windows(qkv, number)
        order, inverse = self.shuffles[name](qkv.device)
        return self._attend_windows(qkv[:, order], number)[:, inverse]

    def _attend_windows(self, qkv: Tensor, number: int) -> Tensor:
        batch, tokens = qkv.shape[:2]
        folded = qkv.reshape(batch * number, tokens // number, *qkv.shape[2:])
        return self._attend(folded).reshape(batch, tokens, -1)
