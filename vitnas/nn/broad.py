"""Broad attention: one attention without parameters over the queries, keys and values of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.model import ModelConfig
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers import Tap


class LayerShape(NamedTuple):
    """A layer that is collected from: its grid (H, W), heads and channels."""

    grid: Grid
    num_heads: int
    dim: int


class BroadAttention(nn.Module):
    """z + gamma * softmax(sum_i q_i k_i^T * scale) BPool[v_1 .. v_L] over L collected layers.

    Source: BViT, Eq. 5 to 8. No parameters. Where we differ or fill a gap:

    - The scale is head_dim^-0.5; Eq. 6 says the hidden dimension, `scale="embed_dim"`.
    - Eq. 7 does not say how BPool orders channels. `official` is what the official code does: its
      channels lie as (head, layer, dim) and L adjacent ones are averaged, so it does not average
      over layers; `layers` does.
    - BPool is linear over channels, so it is done on V before the attention and not on its output:
      the same result with L times less work in A V. The sum of the layers' logits is one product
      of queries and keys laid side by side.
    - In a hierarchy tokens are max-pooled to the last grid and channels brought to the last width
      by adaptive average pooling; the heads are those of the last stage that is collected from.

    Args:
        gamma: weight of the broad feature, > 0.
        target: the last stage's grid and channels C with the heads h to attend with; d = C / h.
        sources: the collected layers, in the order of the taps.
        pool: `official` or `layers`.
        scale: `head_dim` or `embed_dim`.
        with_v: whether all layers' values are used, or the last layer's alone (Table II).
        with_qk: likewise for queries and keys.

    Shape: z `(B, N, C)` -> `(B, N, C)`.
    MACs: N^2 C (L + 1); with the last layer's q and k alone 2 N^2 C.
    """

    def __init__(
        self,
        gamma: float,
        target: LayerShape,
        sources: Sequence[LayerShape],
        *,
        pool: Literal["official", "layers"] = "official",
        scale: Literal["head_dim", "embed_dim"] = "head_dim",
        with_v: bool = True,
        with_qk: bool = True,
    ) -> None:
        super().__init__()
        self.gamma, self.target, self.sources = gamma, target, tuple(sources)
        self.pool, self.with_v, self.with_qk = pool, with_v, with_qk
        per_head = target.dim // target.num_heads
        self.scale = (target.dim if scale == "embed_dim" else per_head) ** -0.5

    @classmethod
    def of(cls, config: ModelConfig) -> BroadAttention:
        """The broad attention of a whole network with gamma > 0."""
        broad, stages, indices = config.broad, config.stages, config.broad_sources
        layers = stages[0].depth if len(stages) == 1 else 1
        return cls(
            broad.gamma,
            LayerShape(config.grids[-1], stages[indices[-1]].heads, stages[-1].embed_dim),
            [
                LayerShape(config.grids[index], stages[index].heads, stages[index].embed_dim)
                for index in indices
                for _ in range(layers)
            ],
            pool=broad.pool,
            scale=broad.scale,
            with_v=broad.with_v,
            with_qk=broad.with_qk,
        )

    def forward(self, z: Tensor, taps: list[Tap]) -> Tensor:
        """Add the broad feature of `taps`, one per collected layer, to the last layer's output."""
        layers = list(zip(taps, self.sources, strict=True))
        asked = layers if self.with_qk else layers[-1:]
        query = torch.cat([self._fit(tap.query, source) for tap, source in asked], -1)
        key = torch.cat([self._fit(tap.key, source) for tap, source in asked], -1)
        given = layers if self.with_v else layers[-1:]
        value = self.pool_values([self._fit(tap.value, source) for tap, source in given])
        out = F.scaled_dot_product_attention(query, key, value, scale=self.scale)
        return z + self.gamma * out.transpose(1, 2).flatten(2)

    def pool_values(self, values: list[Tensor]) -> Tensor:
        """BPool: L tensors `(B, h, N, d)` -> `(B, h, N, d)`."""
        if self.pool == "layers":
            return torch.stack(values).mean(dim=0)
        side_by_side = torch.cat(values, dim=-1)  # (B, h, N, L * d), layers outermost
        return torch.unflatten(side_by_side, -1, (-1, len(values))).mean(dim=-1)

    def _fit(self, x: Tensor, source: LayerShape) -> Tensor:
        """`(B, h_i, N_i, d_i)` of source i -> `(B, h, N, d)`."""
        if source == self.target:
            return x
        tokens = x.transpose(1, 2).flatten(2)  # (B, N_i, C_i)
        grid, (rows, columns) = source.grid, self.target.grid
        if grid != self.target.grid:
            picture = to_picture(tokens, grid)
            tokens = to_tokens(F.max_pool2d(picture, [grid[0] // rows, grid[1] // columns]))
        fitted = resize_channels(tokens, source.dim, self.target.dim)
        return torch.unflatten(fitted, 2, (self.target.num_heads, -1)).transpose(1, 2)


def resize_channels(x: Tensor, before: int, after: int) -> Tensor:
    """`(B, N, before)` -> `(B, N, after)` by adaptive average pooling over channels.

    Equal to `F.adaptive_avg_pool1d`; where one width divides the other it is written as the mean
    of neighbours or as repetition, whose gradients are deterministic on CUDA.
    """
    if before == after:
        return x
    if before % after == 0:
        return torch.unflatten(x, -1, (after, before // after)).mean(dim=-1)
    if after % before == 0:
        return x.unsqueeze(-1).expand(-1, -1, -1, after // before).flatten(-2)
    return F.adaptive_avg_pool1d(x, after)
