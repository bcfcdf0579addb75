"""sail-sg/metaformer, and zizhao-hu/SKA, which adds two token mixers, in their names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from tests.nn.zoo.codes.common import bare, heads_of, tokens_of


class Norm(nn.Module):
    """Over the last axis, with a weight and no bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() * self.weight


class Scale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


class StarReLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x.relu() ** 2 + self.bias


class SepConv(nn.Module):
    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.pwconv1 = nn.Linear(width, 2 * width, bias=False)
        self.act1 = StarReLU()
        self.dwconv = nn.Conv2d(2 * width, 2 * width, 7, padding=3, groups=2 * width, bias=False)
        self.pwconv2 = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dwconv(self.act1(self.pwconv1(x)).permute(0, 3, 1, 2))
        return self.pwconv2(x.permute(0, 2, 3, 1))


class Attention(nn.Module):
    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.heads = width // 32
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(x.flatten(1, 2)).chunk(3, dim=-1))
        weights = (q @ k.transpose(-2, -1) / 32**0.5).softmax(dim=-1)
        return self.proj(tokens_of(weights @ v)).reshape(x.shape)


class Stu(nn.Module):
    """SKA as its code has it: the tokens themselves are the query."""

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.heads = width // 32
        self.v = nn.Linear(width, width, bias=False)
        self.k = nn.Parameter(torch.randn(self.heads, tokens, 32))
        self.proj = nn.Linear(width, width, bias=False)

    def query(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(1, 2)
        q, v = heads_of(self.query(tokens), self.heads), heads_of(self.v(tokens), self.heads)
        weights = (q @ self.k.transpose(-2, -1) / 32**0.5).softmax(dim=-1)
        return self.proj(tokens_of(weights @ v)).reshape(x.shape)


class StuWithQuery(Stu):
    """As the paper's Algorithm 1, with a query projection."""

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__(width, tokens)
        self.q = nn.Linear(width, width, bias=False)

    def query(self, x: Tensor) -> Tensor:
        return self.q(x)


class Cstu(nn.Module):
    """CSKA as its code has it, 16 channels a head."""

    kernel = 3

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.heads = width // 16
        self.qv = nn.Linear(width, 2 * width, bias=False)
        self.to_k = nn.Conv2d(
            width,
            self.heads * tokens,
            self.kernel,
            padding=self.kernel // 2,
            groups=self.heads,
        )
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, v = self.qv(x).chunk(2, dim=-1)
        maps = self.to_k(q.permute(0, 3, 1, 2)) / 16**0.5  # (B, h * N, H, W)
        rows = maps.flatten(2).unflatten(1, (self.heads, -1)).transpose(-2, -1)
        mixed = rows.softmax(dim=-1) @ heads_of(v.flatten(1, 2), self.heads)
        return self.proj(tokens_of(mixed)).reshape(x.shape)


class Cstu5(Cstu):
    """With another kernel than the paper's."""

    kernel = 5


class Metaformer(nn.Module):
    """Stages are token mixers; the last two have a scale on the identity. PyTorch's epsilon in the
    classifier's norm, 1e-6 in all others."""

    def __init__(
        self,
        widths: Sequence[int],
        depths: Sequence[int],
        mixers: Sequence[type[nn.Module]],
        img_size: int = 64,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.downsample_layers = nn.ModuleList(
            [bare(conv=nn.Conv2d(channels, widths[0], 7, 4, padding=2), post_norm=Norm(widths[0]))]
        )
        for before, after in pairwise(widths):
            convolution = nn.Conv2d(before, after, 3, 2, padding=1)
            self.downsample_layers.append(bare(pre_norm=Norm(before), conv=convolution))
        self.stages = nn.ModuleList()
        for index, (width, depth, mixer) in enumerate(zip(widths, depths, mixers, strict=True)):
            tokens = (img_size // (4 << index)) ** 2
            blocks = [self._block(width, mixer(width, tokens), index >= 2) for _ in range(depth)]
            self.stages.append(nn.Sequential(*blocks))
        last = widths[-1]
        self.norm = nn.LayerNorm(last, eps=1e-6)
        self.head = bare(
            fc1=nn.Linear(last, 4 * last),
            norm=nn.LayerNorm(4 * last),
            fc2=nn.Linear(4 * last, classes),
        )

    @staticmethod
    def _block(width: int, mixer: nn.Module, scaled: bool) -> nn.Module:
        block = bare(
            norm1=Norm(width),
            token_mixer=mixer,
            norm2=Norm(width),
            mlp=bare(
                fc1=nn.Linear(width, 4 * width, bias=False),
                act=StarReLU(),
                fc2=nn.Linear(4 * width, width, bias=False),
            ),
        )
        for name in ("res_scale1", "res_scale2") if scaled else ():
            block.add_module(name, Scale(width))
        return block

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for index, (down, stage) in enumerate(
            zip(self.downsample_layers, self.stages, strict=True)
        ):
            if index:
                x = down.conv(down.pre_norm(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            else:
                x = down.post_norm(down.conv(x).permute(0, 2, 3, 1))
            for block in stage:
                x = identity(block, "res_scale1", x) + block.token_mixer(block.norm1(x))
                mlp = block.mlp
                hidden = mlp.act(mlp.fc1(block.norm2(x)))
                x = identity(block, "res_scale2", x) + mlp.fc2(hidden)
        vector = self.norm(x.mean(dim=(1, 2)))
        hidden = self.head.fc1(vector).relu() ** 2
        return self.head.fc2(self.head.norm(hidden))


def identity(block: nn.Module, name: str, x: Tensor) -> Tensor:
    return getattr(block, name)(x) if hasattr(block, name) else x
