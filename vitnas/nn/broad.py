"""Broad attention: one attention, without parameters, over queries, keys and values of layers."""

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
    """The grid (H, W), heads and channels of queries that broad attention collects.

    `keys` is the grid of keys and values where they are fewer than the queries, else None.
    """

    grid: Grid
    num_heads: int
    dim: int
    keys: Grid | None = None

    @property
    def of_keys(self) -> LayerShape:
        """The shape of the keys and of the values."""
        return self if self.keys is None else LayerShape(self.keys, self.num_heads, self.dim)


class BroadAttention(nn.Module):
    """z + gamma * softmax(scale * sum_i q_i k_i^T) BPool[v_1 .. v_L].

    z is the output of the last layer. The sum goes over L collected layers; q_i, k_i, v_i are the
    queries, keys and values of layer i. BPool averages the channels of the L values to C channels.

    Source: BViT, Eq. 5 to 8. No parameters. Differences and gaps in the paper:

    - The scale is head_dim^-0.5. Eq. 6 says the hidden dimension: `scale="embed_dim"`.
    - Eq. 7 does not say in which order BPool averages channels. `official` does what the official
      code does: channels are ordered as (head, layer, dim), and each L adjacent channels are
      averaged. This is no average over layers; `layers` is one.
    - BPool is linear over channels. So it is applied to the values before the attention, not to
      the output. The result is the same, and the product with the map has L times fewer MACs.
    - The sum of the layers' logits is one product of concatenated queries and keys.
    - In a network of several stages tokens are max-pooled to the last grid (a class token stays
      as it is), and channels are resized to the last width by adaptive average pooling. The number
      of heads is that of the last collected layer.

    Args:
        gamma: weight of the broad feature, > 0.
        target: grid of N tokens and channels C of the last stage, and the heads h of this
            attention; head_dim d = C / h.
        sources: the collected layers, in the order of the taps.
        pool: `official` or `layers`.
        scale: `head_dim` or `embed_dim`.
        with_v: whether the values of all layers are used; else only the last layer's (Table II).
        with_qk: the same for queries and keys.
        prefix: class tokens before the patch tokens.

    Shape: z `(B, N, C)` -> `(B, N, C)`.
    MACs: N^2 C (L + 1); with queries and keys of only the last layer 2 N^2 C.
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
        prefix: int = 0,
    ) -> None:
        super().__init__()
        self.prefix = prefix
        self.gamma, self.target, self.sources = gamma, target, tuple(sources)
        self.pool, self.with_v, self.with_qk = pool, with_v, with_qk
        per_head = target.dim // target.num_heads
        self.scale = (target.dim if scale == "embed_dim" else per_head) ** -0.5

    @classmethod
    def of(cls, config: ModelConfig) -> BroadAttention:
        """The broad attention of a network whose `broad.gamma` is above 0."""
        broad, stages = config.broad, config.stages
        indices = [stage for stage, _ in config.broad_sources]
        return cls(
            broad.gamma,
            LayerShape(config.grids[-1], stages[indices[-1]].heads, stages[-1].embed_dim),
            [
                LayerShape(config.grids[index], stages[index].heads, stages[index].attn_width)
                for index in indices
            ],
            pool=broad.pool,
            scale=broad.scale,
            with_v=broad.with_v,
            with_qk=broad.with_qk,
            prefix=config.num_prefix_tokens,
        )

    def forward(self, z: Tensor, taps: list[Tap]) -> Tensor:
        """Add the broad feature to the last layer's output z. `taps` has one entry per source."""
        layers = list(zip(taps, self.sources, strict=True))
        asked = layers if self.with_qk else layers[-1:]
        query = torch.cat([self._fit(tap.query, source) for tap, source in asked], -1)
        key = torch.cat([self._fit(tap.key, source.of_keys) for tap, source in asked], -1)
        given = layers if self.with_v else layers[-1:]
        value = self.pool_values([self._fit(tap.value, source.of_keys) for tap, source in given])
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
            picture = to_picture(tokens[:, self.prefix :], grid)
            pooled = to_tokens(F.max_pool2d(picture, [grid[0] // rows, grid[1] // columns]))
            tokens = torch.cat([tokens[:, : self.prefix], pooled], dim=1)
        fitted = resize_channels(tokens, source.dim, self.target.dim)
        return torch.unflatten(fitted, 2, (self.target.num_heads, -1)).transpose(1, 2)


def resize_channels(x: Tensor, before: int, after: int) -> Tensor:
    """`(B, N, before)` -> `(B, N, after)` by adaptive average pooling over channels.

    Equal to `F.adaptive_avg_pool1d`. If one width divides the other, it is computed as a mean of
    neighbours or as a repetition, because their gradients are deterministic on CUDA.
    """
    if before == after:
        return x
    if before % after == 0:
        return torch.unflatten(x, -1, (after, before // after)).mean(dim=-1)
    if after % before == 0:
        return x.unsqueeze(-1).expand(-1, -1, -1, after // before).flatten(-2)
    return F.adaptive_avg_pool1d(x, after)
