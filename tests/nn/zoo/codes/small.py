"""zizhao-hu/SKA's ViT for small images, which is vit-pytorch's, in its names."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from tests.nn.zoo.codes.common import bare, heads_of, tokens_of


class SmallVit(nn.Module):
    """With `static` keys it is the code's STU, else its LSA."""

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        dim_head: int,
        hidden: int,
        static: bool = True,
        img_size: int = 16,
        patch: int = 4,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.heads, self.patch = heads, patch
        pixels, tokens = 5 * channels * patch**2, (img_size // patch) ** 2 + 1
        embed = [nn.Identity(), nn.LayerNorm(pixels), nn.Linear(pixels, width)]
        self.to_patch_embedding = bare(to_patch_tokens=nn.Sequential(*embed))
        self.pos_embedding = nn.Parameter(torch.zeros(1, tokens, width))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        layers = nn.ModuleList()
        for _ in range(depth):
            attention = bare(to_out=nn.Sequential(nn.Linear(heads * dim_head, width)))
            attention.temperature = nn.Parameter(torch.zeros(()))
            if static:
                attention.k = nn.Parameter(torch.zeros(heads, tokens, dim_head))
            name, count = ("to_qv", 2) if static else ("to_qkv", 3)
            attention.add_module(name, nn.Linear(width, count * heads * dim_head, bias=False))
            parts = [nn.Linear(width, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, width)]
            mlp = bare(net=nn.Sequential(*parts))
            both = (bare(norm=nn.LayerNorm(width), fn=part) for part in (attention, mlp))
            layers.append(nn.ModuleList(both))
        self.transformer = bare(layers=layers)
        self.mlp_head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, images: Tensor) -> Tensor:
        x = self.to_patch_embedding.to_patch_tokens(self._patches(images))
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embedding
        for attention, mlp in self.transformer.layers:
            x = x + self._attention(attention.fn, attention.norm(x))
            net = mlp.fn.net
            x = x + net[3](gelu(net[0](mlp.norm(x))))
        return self.mlp_head(x[:, 0])

    def _patches(self, images: Tensor) -> Tensor:
        """`(B, N, patch * patch * 5 * C)`: row, column, shift, channel."""
        sides = ((0, 0, 0, 0), (1, -1, 0, 0), (-1, 1, 0, 0), (0, 0, 1, -1), (0, 0, -1, 1))
        x = torch.cat([pad(images, side) for side in sides], dim=1)
        x = x.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)
        return x.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)

    def _attention(self, attn: nn.Module, x: Tensor) -> Tensor:
        if hasattr(attn, "k"):
            q, v = (heads_of(t, self.heads) for t in attn.to_qv(x).chunk(2, dim=-1))
            k = attn.k
        else:
            q, k, v = (heads_of(t, self.heads) for t in attn.to_qkv(x).chunk(3, dim=-1))
        dots = q @ k.transpose(-1, -2) * attn.temperature.exp()
        own = torch.eye(dots.shape[-1], dtype=torch.bool)
        weights = dots.masked_fill(own, -torch.finfo(dots.dtype).max).softmax(dim=-1)
        return attn.to_out(tokens_of(weights @ v))
