"""koala719/BViT in its names."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool1d, gelu

from tests.nn.zoo.codes.common import bare, heads_of, tokens_of


class Bvit(nn.Module):
    """All layer norms have PyTorch's epsilon; `halved`: with its convolution before the patches."""

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        mlp_width: int,
        halved: bool = True,
        img_size: int = 64,
        patch: int = 16,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.heads, self.patch, self.width = heads, patch, width
        if halved:
            self.conv = nn.Conv2d(channels, channels, 7, 2, padding=3)
        self.to_patch_embedding = bare(**{"1": nn.Linear(patch * patch * channels, width)})
        self.pos_embedding = nn.Parameter(torch.zeros(1, (img_size // patch) ** 2 + 1, width))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        layers = nn.ModuleList()
        for _ in range(depth):
            attention = bare(
                to_qkv=nn.Linear(width, 3 * width, bias=False),
                to_out=bare(**{"0": nn.Linear(width, width)}),
            )
            mlp = {"0": nn.Linear(width, mlp_width), "3": nn.Linear(mlp_width, width)}
            layers.append(
                nn.ModuleList(
                    [
                        bare(norm=nn.LayerNorm(width), fn=attention),
                        bare(norm=nn.LayerNorm(width), fn=bare(net=bare(**mlp))),
                    ]
                )
            )
        self.transformer = bare(layers=layers)
        self.mlp_head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, images: Tensor) -> Tensor:
        x = self.conv(images) if hasattr(self, "conv") else images
        x = self.to_patch_embedding.get_submodule("1")(self._patches(x))
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)
        x = x + self.pos_embedding[:, : x.shape[1]]
        collected = []
        for attention, mlp in self.transformer.layers:
            qkv = attention.fn.to_qkv(attention.norm(x)).chunk(3, dim=-1)
            q, k, v = (heads_of(t, self.heads) for t in qkv)
            collected.append((q, k, v))
            x = x + attention.fn.to_out.get_submodule("0")(tokens_of(self._attend(q, k, v)))
            net = mlp.fn.net
            hidden = gelu(net.get_submodule("0")(mlp.norm(x)))
            x = x + net.get_submodule("3")(hidden)
        q, k, v = (torch.cat(parts, dim=-1) for parts in zip(*collected, strict=True))
        broad = adaptive_avg_pool1d(tokens_of(self._attend(q, k, v)), self.width)
        return self.mlp_head((x + 0.4 * broad)[:, 0])

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """By the root of a head's width in one layer, also over the layers side by side."""
        scale = (self.width // self.heads) ** -0.5
        return (scale * q @ k.transpose(-2, -1)).softmax(dim=-1) @ v

    def _patches(self, x: Tensor) -> Tensor:
        """`(B, C, H, W)` -> `(B, patches, p * p * C)`, channels innermost."""
        side = self.patch
        rows = [row.split(side, dim=3) for row in x.split(side, dim=2)]
        return torch.stack([p.permute(0, 2, 3, 1).flatten(1) for row in rows for p in row], dim=1)
