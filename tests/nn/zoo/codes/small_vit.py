"""zizhao-hu/SKA's ViT for small images with CSTU in its names."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.nn.zoo.codes.common import heads_of, tokens_of
from tests.nn.zoo.codes.small import SmallVit


class SmallCstuVit(SmallVit):
    """The ViT of STU, where a convolution gives the maps of all but the class token."""

    def __init__(self, width: int, depth: int, heads: int, hidden: int, **sizes: int) -> None:
        super().__init__(width, depth, heads, width // heads, hidden, **sizes)
        for attention, _ in self.transformer.layers:
            attn = attention.fn
            attn.k2 = attn.k
            del attn.k
            keys = heads * attn.k2.shape[1]
            attn.to_k = nn.Conv2d(width, keys, 3, padding=1, groups=heads)

    def _attention(self, attn: nn.Module, x: Tensor) -> Tensor:
        q, v = (heads_of(t, self.heads) for t in attn.to_qv(x).chunk(2, dim=-1))
        side = round((x.shape[1] - 1) ** 0.5)
        grid = attn.to_k(tokens_of(q[:, :, 1:]).mT.unflatten(2, (side, side)))
        rows = grid.flatten(2).unflatten(1, (self.heads, -1)).mT
        last = q[:, :, :1] @ attn.k2.mT * attn.temperature.exp()
        dots = torch.cat([rows, last], dim=2)  # its rows begin with the grid, the values do not
        own = torch.eye(dots.shape[-1], dtype=torch.bool)
        weights = dots.masked_fill(own, -torch.finfo(dots.dtype).max).softmax(dim=-1)
        return attn.to_out(tokens_of(weights @ v))
