"""Multi-head self-attention, whole or in token groups, with or without re-attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.shuffle import TokenShuffle
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.attention import AttentionMixer, options_at
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class MultiHeadSelfAttention(AttentionMixer):
    """softmax(Q K^T / sqrt(d)) V for h heads, then a projection.

    Q, K and V are the queries, keys and values `(B, h, N, d)`, projected from the tokens.

    Sources: Vaswani et al.; group attention is SReT, Section 4 and Algorithm 1; re-attention is
    DeepViT, Eq. 3.

    A pass with g > 1 groups permutes the tokens, attends inside g groups of N/g tokens and inverts
    the permutation in the same pass. Algorithm 1 inverts it only in the second pass, and so adds a
    permuted branch to a residual that is not permuted. `permute="second"` is the form of the
    official code: contiguous windows in the first pass, permuted and inverted in later ones. A pass
    with g = 1 never permutes, because attention does not depend on the order.

    With convolutions the inputs of the three projections differ, and there may be M < N keys and
    values (then g is 1).

    If later blocks use the map of this block (`SharedMapAttention`), it builds the map and shares
    it in its tap.

    Args:
        dim: channels C.
        num_heads: heads h; head_dim d = A / h, where A are the channels of Q, C by default.
        num_tokens: N with class token. It only fixes the permutations of eval.
        groups: g of each pass; each divides N.
        permute: `always` (every pass with g > 1), `second` or `never` (contiguous windows).
        inverts: whether a permutation is inverted; else the output is in the permuted order (Table
            7, row P).
        block: index of the block in the network. It seeds the permutations of eval.
        qkv_bias: whether query, key and value have a bias.
        shares_map: whether later blocks use this block's map. Then its last pass has g = 1.
        **attention: as for `AttentionMixer`.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    MACs: ``2 * (N + m) * C * A + N * m * (2 * A / g + r * h**2) + u**2 * C * (N + 2 * m - 3 * p)``;
    r is 1 with re-attention, else 0; m is M; u is the side of the convolutions, 0 without; p is
    the number of tokens before the grid.
    Randomness: dropout and permutations, in training only (see `TokenShuffle`).
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_tokens: int,
        *,
        groups: Sequence[int] = (1,),
        permute: Literal["always", "second", "never"] = "always",
        inverts: bool = True,
        block: int = 0,
        qkv_bias: bool = True,
        shares_map: bool = False,
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        self.groups, self.shares_map, self.inverts = tuple(groups), shares_map, inverts
        self.qkv = nn.Linear(dim, 3 * self.width, bias=qkv_bias)
        first = {"always": 0, "second": 1, "never": len(self.groups)}[permute]
        self.shuffles = nn.ModuleDict(
            {
                str(pass_index): TokenShuffle(num_tokens, block, pass_index)
                for pass_index, number in enumerate(self.groups)
                if number > 1 and pass_index >= first
            }
        )

    @classmethod
    def at(cls, place: Place) -> TokenMixer:
        config, stage = place.config, place.stage_config
        if place.reattention and config.reattention.source == "shared":
            return SharedMapAttention.at(place)
        return cls(
            stage.embed_dim,
            stage.heads,
            place.num_tokens,
            groups=stage.groups,
            permute=config.permute,
            inverts=config.permute_inverse,
            block=place.block,
            qkv_bias=config.qkv_bias,
            shares_map=place.block == config.map_source,
            **options_at(place),
        )

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        if self.has_fewer_keys:
            return self._project(self._attend_to_fewer(self._convolve(x, grid, pass_index), taps))
        if self.convs:
            projected = torch.cat(self._convolve(x, grid, pass_index), dim=2)
        else:
            projected = self.qkv(x)
        qkv = torch.unflatten(projected, 2, (3, self.num_heads, self.head_dim))  # (B, N, 3, h, d)
        if self.shares_map and taps is not None:
            query, key, value = _by_heads(qkv)
            return self._project(self._attend_and_share(query, key, value, taps))
        if taps is not None:
            query, key, value = _by_heads(qkv)
            taps.append(Tap(query, key, value))
        number = self.groups[pass_index]
        return self._project(
            self._attend_all(qkv) if number == 1 else self._attend_groups(qkv, pass_index)
        )

    def _convolve(self, x: Tensor, grid: Grid, pass_index: int) -> list[Tensor]:
        """Query `(B, N, A)`, key and value `(B, M, A)`: a third of `qkv` each."""
        parts = []
        for index, name in enumerate(self.convolved):
            third = slice(index * self.width, (index + 1) * self.width)
            bias = None if self.qkv.bias is None else self.qkv.bias[third]
            inner = self._input(name, x, grid, pass_index)
            parts.append(F.linear(inner, self.qkv.weight[third], bias))
        return parts

    def _attend_to_fewer(self, parts: list[Tensor], taps: list[Tap] | None) -> Tensor:
        """Query `(B, N, A)`, key and value `(B, M, A)` -> `(B, N, A)`."""
        query, key, value = (self._split_heads(part) for part in parts)
        if self.shares_map and taps is not None:
            return self._attend_and_share(query, key, value, taps)
        if taps is not None:
            taps.append(Tap(query, key, value))
        return self._attend(query, key, value)

    def _attend_all(self, qkv: Tensor) -> Tensor:
        """`(B, N, 3, h, d)` -> `(B, N, A)`: every token sees every other."""
        query, key, value = _by_heads(qkv)
        return self._attend(query, key, value)

    def _attend_and_share(
        self, query: Tensor, key: Tensor, value: Tensor, taps: list[Tap]
    ) -> Tensor:
        """As `_attend`; the map is shared with later blocks."""
        attention = self._map_of(query, key)
        taps.append(Tap(query, key, value, attention))
        return self._apply_map(attention, value)

    def _attend_groups(self, qkv: Tensor, pass_index: int) -> Tensor:
        """As `_attend_all`, inside g groups, which are folded into the batch."""
        number = self.groups[pass_index]
        if str(pass_index) not in self.shuffles:
            return self._attend_windows(qkv, number)
        order, inverse = self.shuffles[str(pass_index)](qkv.device)
        mixed = self._attend_windows(qkv[:, order], number)
        return mixed[:, inverse] if self.inverts else mixed

    def _attend_windows(self, qkv: Tensor, number: int) -> Tensor:
        batch, tokens = qkv.shape[0], qkv.shape[1]
        inner = [batch * number, tokens // number, 3, self.num_heads, self.head_dim]
        return self._attend_all(qkv.reshape(inner)).reshape(batch, tokens, -1)

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return super().resized(old, new)


def _by_heads(qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`(B, N, 3, h, d)` -> query, key and value, each `(B, h, N, d)`.

    They are views. Taken apart in this order, their gradients are put together by one copy.
    """
    query, key, value = qkv.unbind(2)
    return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)


class SharedMapAttention(AttentionMixer):
    """scale * Norm(Theta^T A) V, then a projection, where A is the map of an earlier block.

    Theta mixes the heads of A, and V are the values (see `Reattention`). There is neither a query
    nor a key.

    Source: DeepViT, attention reuse, Eq. 5 and Table 3.

    Args:
        dim: channels C.
        num_heads: heads h, as in the earlier block.
        qkv_bias: whether the value has a bias.
        **attention: as for `AttentionMixer`; `reattention` must be given.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters 2 C A, those of re-attention, and biases, where A
    are the channels of V.
    MACs: ``(N + m) * C * A + N * m * (A + h**2) + u**2 * C * (m - p)``; m, u and p are those of
    `MultiHeadSelfAttention`.
    Randomness: dropout, in training only.
    """

    convolved = ("value",)

    def __init__(
        self, dim: int, num_heads: int, *, qkv_bias: bool = True, **attention: Any
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        self.act = None  # the other block has applied it
        self.v = nn.Linear(dim, self.width, bias=qkv_bias)

    @classmethod
    def at(cls, place: Place) -> SharedMapAttention:
        stage = place.stage_config
        return cls(
            stage.embed_dim,
            stage.heads,
            qkv_bias=place.config.qkv_bias,
            **{**options_at(place), "tau": 1.0},  # softmax was taken in the other block
        )

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        """The last entry of `taps` has the map `(B, h, N, M)`."""
        assert taps is not None
        assert self.reattention is not None
        attention = taps[-1].attention
        assert attention is not None
        value = self._split_heads(self.v(self._input("value", x, grid, pass_index)))
        mixed = self.reattention(self.attn_drop(attention))
        return self._project(self._apply_map(mixed, value))
