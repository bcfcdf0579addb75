"""zhoudaquan/dvit_repo in its names."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from tests.nn.zoo.codes.common import bare, heads_of, tokens_of

EPS = 1e-6


class Deepvit(nn.Module):
    """`adjust` and `scale_maps` are its `scale_adjustment` and `transform_scale`."""

    def __init__(
        self,
        width: int,
        depth: int,
        reattention: int,
        heads: int = 12,
        mlp_ratio: int = 3,
        cnn: bool = False,
        adjust: float = 1.0,
        scale_maps: bool = False,
        img_size: int = 32,
        patch: int = 16,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.heads, self.adjust = heads, adjust
        self.map_scale = (width // heads) ** -0.5 if scale_maps else 1.0
        self.patch_embed = bare(proj=nn.Conv2d(channels, width, patch, patch))
        if cnn:
            self.patch_embed = bare(
                conv1=nn.Conv2d(channels, 64, 7, 2, padding=3, bias=False),
                bn1=nn.BatchNorm2d(64),
                conv2=nn.Conv2d(64, 64, 3, 1, padding=1, bias=False),
                bn2=nn.BatchNorm2d(64),
                proj=nn.Conv2d(64, width, patch // 2, patch // 2),
            )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (img_size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(
            self._block(width, mlp_ratio, mixed=at >= depth - reattention) for at in range(depth)
        )
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.head = nn.Linear(width, classes)

    def _block(self, width: int, ratio: int, mixed: bool) -> nn.Module:
        attn = bare(qkv=nn.Linear(width, 3 * width), proj=nn.Linear(width, width))
        if mixed:
            attn.add_module("reatten_matrix", nn.Conv2d(self.heads, self.heads, 1))
            attn.add_module("var_norm", nn.BatchNorm2d(self.heads))
        return bare(
            norm1=nn.LayerNorm(width, eps=EPS),
            attn=attn,
            norm2=nn.LayerNorm(width, eps=EPS),
            mlp=bare(fc1=nn.Linear(width, ratio * width), fc2=nn.Linear(ratio * width, width)),
        )

    def forward(self, images: Tensor) -> Tensor:
        x, stem = images, self.patch_embed
        if hasattr(stem, "conv1"):
            x = stem.bn1(stem.conv1(x)).relu()
            x = stem.bn2(stem.conv2(x)).relu()
        x = stem.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        for block in self.blocks:
            x = x + self._attention(block.attn, block.norm1(self.adjust * x)) / self.adjust
            hidden = gelu(block.mlp.fc1(block.norm2(self.adjust * x)))
            x = x + block.mlp.fc2(hidden) / self.adjust
        return self.head(self.norm(x)[:, 0])

    def _attention(self, attn: nn.Module, x: Tensor) -> Tensor:
        q, k, v = (heads_of(t, self.heads) for t in attn.qkv(x).chunk(3, dim=-1))
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(dim=-1)
        if hasattr(attn, "reatten_matrix"):
            weights = attn.var_norm(attn.reatten_matrix(weights)) * self.map_scale
        return attn.proj(tokens_of(weights @ v))
