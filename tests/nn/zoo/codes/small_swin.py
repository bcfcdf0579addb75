"""zizhao-hu/SKA's Swin for small images in its names, which are berniwal's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, unfold

from tests.nn.zoo.codes.common import bare, heads_of


class SmallSwin(nn.Module):
    """`kind`: attention (berniwal's), stu or cstu; the windows are 4x4 tokens."""

    def __init__(
        self,
        width: int,
        depths: Sequence[int],
        heads: Sequence[int],
        head_dim: int,
        factors: Sequence[int],
        kind: str = "attention",
        img_size: int = 32,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.heads, self.factors, self.kind = heads, factors, kind
        side, before = img_size, channels
        for at, (depth, count, factor) in enumerate(zip(depths, heads, factors, strict=True)):
            dim, side = width * 2**at, side // factor
            merge = bare(linear=nn.Linear(before * factor**2, dim))
            pairs = nn.ModuleList(
                nn.ModuleList(
                    self._block(dim, count, head_dim, (side // 4) ** 2, s) for s in (0, 1)
                )
                for _ in range(depth // 2)
            )
            self.add_module(f"stage{at + 1}", bare(patch_partition=merge, layers=pairs))
            before = dim
        self.mlp_head = nn.Sequential(nn.LayerNorm(before), nn.Linear(before, classes))

    def _block(self, dim: int, heads: int, head_dim: int, windows: int, shifted: int) -> nn.Module:
        inner = heads * head_dim
        attn = bare(to_out=nn.Linear(inner, dim))
        attn.pos_embedding = nn.Parameter(torch.zeros(7, 7))
        if shifted:
            for name, axis in (("upper_lower_mask", 0), ("left_right_mask", 1)):
                attn.register_parameter(name, nn.Parameter(_mask(axis), requires_grad=False))
        parts = 3 if self.kind == "attention" else 2
        name = "to_qkv" if self.kind == "attention" else "to_qv"
        attn.add_module(name, nn.Linear(dim, parts * inner, bias=False))
        if self.kind == "stu":
            attn.k = nn.Parameter(torch.zeros(heads, windows, 16, head_dim))
        if self.kind == "cstu":
            groups = heads * windows
            attn.to_k = nn.Conv2d(dim * windows, inner * windows, 3, padding=1, groups=groups)
        net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        both = (bare(norm=nn.LayerNorm(dim), fn=part) for part in (attn, bare(net=net)))
        attention, mlp = (bare(fn=part) for part in both)
        return bare(attention_block=attention, mlp_block=mlp)

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for at, (heads, factor) in enumerate(zip(self.heads, self.factors, strict=True)):
            stage = getattr(self, f"stage{at + 1}")
            sides = x.shape[2] // factor, x.shape[3] // factor
            cut = unfold(x, factor, stride=factor).unflatten(2, sides).permute(0, 2, 3, 1)
            x = stage.patch_partition.linear(cut)
            for pair in stage.layers:
                for block in pair:
                    attn, mlp = block.attention_block.fn, block.mlp_block.fn
                    x = x + self._attention(attn.fn, attn.norm(x), heads)
                    net = mlp.fn.net
                    x = x + net[2](gelu(net[0](mlp.norm(x))))
            x = x.permute(0, 3, 1, 2)
        return self.mlp_head(x.mean(dim=(2, 3)))

    def _attention(self, attn: nn.Module, x: Tensor, heads: int) -> Tensor:
        shifted = hasattr(attn, "left_right_mask")
        if shifted:
            x = x.roll((-2, -2), dims=(1, 2))
        cells = x.unfold(1, 4, 4).unfold(2, 4, 4)  # (B, rows, columns, C, 4, 4)
        rows, columns = cells.shape[1:3]
        tokens = cells.flatten(4).mT.flatten(1, 2)  # (B, windows, 16, C)
        q, k, v = self._parts(attn, tokens, heads)
        dots = q @ k.mT * q.shape[-1] ** -0.5 + _places(attn.pos_embedding)
        if shifted:
            below = torch.zeros(rows, columns, 16, 16, dtype=x.dtype)
            below[-1] += attn.upper_lower_mask
            below[:, -1] += attn.left_right_mask
            dots = dots + below.flatten(0, 1)
        out = (dots.softmax(dim=-1) @ v).permute(0, 2, 3, 1, 4).flatten(3)
        out = out.unflatten(1, (rows, columns)).unflatten(3, (4, 4)).permute(0, 1, 3, 2, 4, 5)
        out = attn.to_out(out.flatten(3, 4).flatten(1, 2))
        return out.roll((2, 2), dims=(1, 2)) if shifted else out

    def _parts(self, attn: nn.Module, tokens: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """Each `(B, heads, windows, 16, d)`."""
        project = attn.to_qkv if self.kind == "attention" else attn.to_qv
        windows = tokens.shape[1]
        split = project(tokens).chunk(3 if self.kind == "attention" else 2, dim=-1)
        parts = [heads_of(t.flatten(1, 2), heads).unflatten(2, (windows, 16)) for t in split]
        if self.kind == "attention":
            return parts[0], parts[1], parts[2]
        q, v = parts
        if self.kind == "stu":
            key: Tensor = attn.k
            return q, key, v
        grid = attn.to_k(q.mT.flatten(1, 3).unflatten(2, (4, 4))).flatten(2)
        return q, grid.unflatten(1, (heads, windows, -1)).mT, v


def _mask(axis: int) -> Tensor:
    """-inf between the first two and the last two rows, or columns, of a window."""
    half = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij"))[axis] >= 2
    apart = half.flatten()[:, None] != half.flatten()[None, :]
    return torch.zeros(16, 16).masked_fill(apart, float("-inf"))


def _places(table: Tensor) -> Tensor:
    place = torch.tensor([[row, column] for row in range(4) for column in range(4)])
    apart = place[None, :, :] - place[:, None, :] + 3
    return table[apart[..., 0], apart[..., 1]]
