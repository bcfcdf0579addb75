"""zizhao-hu/SKA's CvT for small images in its names: with attention, STU or CSTU.

Their LayerNorm computes in single precision, which is left out: it cannot run in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from tests.nn.zoo.codes.common import bare, heads_of, tokens_of


class SmallCvt(nn.Module):
    """`values` are the numbers of values of each stage that the code has as constants."""

    def __init__(
        self,
        widths: Sequence[int],
        heads: Sequence[int],
        depths: Sequence[int],
        kind: str = "attention",
        values: Sequence[int] = (),
        class_token: bool = True,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.heads, self.kind = heads, kind
        for at, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            kernel, stride, padding = (7, 4, 2) if at == 0 else (3, 2, 1)
            before = widths[at - 1] if at else channels
            embed = bare(
                proj=nn.Conv2d(before, width, kernel, stride, padding), norm=nn.LayerNorm(width)
            )
            last = class_token and at == len(widths) - 1
            keys = values[at] if values else 0
            blocks = [self._block(width, heads[at], keys, last) for _ in range(depth)]
            stage = bare(patch_embed=embed, blocks=nn.ModuleList(blocks))
            if last:
                stage.cls_token = nn.Parameter(torch.zeros(1, 1, width))
            self.add_module(f"stage{at}", stage)
        self.norm, self.head = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], classes)

    def _block(self, width: int, heads: int, keys: int, token: bool) -> nn.Module:
        attn = bare(proj=nn.Linear(width, width))
        for part in "qkv" if self.kind == "attention" else "qv":
            stride = 1 if part == "q" else 2
            conv = nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False)
            attn.add_module(f"conv_proj_{part}", bare(conv=conv, bn=nn.BatchNorm2d(width)))
            attn.add_module(f"proj_{part}", nn.Linear(width, width))
        if self.kind == "stu":
            attn.k = nn.Parameter(torch.zeros(heads, keys + token, width // heads))
        if self.kind == "cstu":
            name = "k1" if token else "k"
            attn.add_module(name, nn.Conv2d(width, keys * heads, 3, padding=1, groups=heads))
            if token:
                attn.k2 = nn.Parameter(torch.zeros(heads, keys, width // heads))
        mlp = bare(fc1=nn.Linear(width, 4 * width), fc2=nn.Linear(4 * width, width))
        return bare(norm1=nn.LayerNorm(width), attn=attn, norm2=nn.LayerNorm(width), mlp=mlp)

    def forward(self, images: Tensor) -> Tensor:
        picture, token = images, None
        for at, heads in enumerate(self.heads):
            stage = getattr(self, f"stage{at}")
            picture, token = self._stage(stage, picture, heads)
        x = picture.flatten(2).mT if token is None else token
        return self.head(self.norm(x).mean(dim=1))

    def _stage(self, stage: nn.Module, x: Tensor, heads: int) -> tuple[Tensor, Tensor | None]:
        x = stage.patch_embed.proj(x)
        sides = x.shape[2:]
        x, first = stage.patch_embed.norm(x.flatten(2).mT), 0
        if hasattr(stage, "cls_token"):
            x, first = torch.cat([stage.cls_token.expand(len(x), -1, -1), x], dim=1), 1
        for block in stage.blocks:
            x = x + self._attention(block.attn, block.norm1(x), heads, first, sides)
            hidden = block.mlp.fc1(block.norm2(x))
            x = x + block.mlp.fc2(hidden * torch.sigmoid(1.702 * hidden))
        return x[:, first:].mT.unflatten(2, sides), x[:, :1] if first else None

    def _attention(
        self, attn: nn.Module, x: Tensor, heads: int, first: int, sides: torch.Size
    ) -> Tensor:
        picture, parts = x[:, first:].mT.unflatten(2, sides), {}
        for part in "qkv" if self.kind == "attention" else "qv":
            conv = getattr(attn, f"conv_proj_{part}")
            tokens = torch.cat([x[:, :first], conv.bn(conv.conv(picture)).flatten(2).mT], dim=1)
            parts[part] = heads_of(getattr(attn, f"proj_{part}")(tokens), heads)
        query, scale = parts["q"], x.shape[-1] ** -0.5
        if self.kind == "cstu":
            logits = self._rows(attn, query, first, sides) * (scale if first else 1)
        else:
            key = attn.k if self.kind == "stu" else parts["k"]
            logits = query @ key.mT * scale
        # einsum stretches a map of one column over all values
        mixed = torch.einsum("bhlt,bhtv->bhlv", logits.softmax(dim=-1), parts["v"])
        return linear(tokens_of(mixed), attn.proj.weight, attn.proj.bias)

    def _rows(self, attn: nn.Module, query: Tensor, first: int, sides: torch.Size) -> Tensor:
        conv, heads = attn.k1 if first else attn.k, query.shape[1]
        grid = conv(query[:, :, first:].mT.flatten(1, 2).unflatten(2, sides))
        rows = grid.unflatten(1, (heads, -1)).flatten(3).mT
        return torch.cat([rows, query[:, :, :1] @ attn.k2.mT], dim=2) if first else rows
