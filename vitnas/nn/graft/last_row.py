"""`cska` whose class token has the last row of the map, as in SKA's code."""

from __future__ import annotations

from torch import Tensor

from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.cska import ConvStaticKeyAttention


class LastRowCska(ConvStaticKeyAttention):
    """`cska`, but the row of the class token comes last in the map, behind those of the grid.

    The values still have the class token first. So the class token gets the mixture of the first
    token of the grid, each token of the grid that of the next one, and the last one that of the
    class token. A masked diagonal is that of this map.

    Source: zizhao-hu/SKA, `smallscaleexp/models/vit_small_cstu.py`. The paper does not say it.

    Args: as of `ConvStaticKeyAttention`, with a class token.
    """

    def _logits(self, query: Tensor, grid: Grid) -> Tensor:
        return super()._logits(query, grid).roll(-1, dims=2)
