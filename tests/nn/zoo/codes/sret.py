"""szq0214/SReT in its names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from tests.nn.zoo.codes.common import bare, heads_of, tokens_of

EPS = 1e-6
Order = Callable[[int, int, int], Tensor]
"""(stage, block, number of tokens) -> the permutation of the second pass."""


class Coefficient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.ones(1))


def mlp(width: int, hidden: int) -> nn.Module:
    return bare(fc1=nn.Linear(width, hidden), fc2=nn.Linear(hidden, width))


class Sret(nn.Module):
    """`order` stands where the code draws with `torch.randperm` at every call."""

    def __init__(
        self,
        widths: Sequence[int],
        heads: Sequence[int],
        depths: Sequence[int],
        groups: Sequence[tuple[int, int]],
        ffn: float,
        nll: float,
        img_size: int = 32,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.heads, self.groups = heads, groups
        self.order: Order = lambda stage, block, tokens: torch.randperm(tokens)
        first = widths[0]
        sizes = [channels, first // 2, first, first]
        parts: dict[str, nn.Module] = {}
        for at in (1, 2, 3):
            parts[f"conv{at}"] = nn.Conv2d(sizes[at - 1], sizes[at], 3, 2, padding=1)
            parts[f"bn{at}"] = nn.BatchNorm2d(sizes[at])
        self.patch_embed = bare(**parts)
        self.pos_embed = nn.Parameter(torch.zeros(1, first, img_size // 8, img_size // 8))
        self.transformers = nn.ModuleList(
            bare(blocks=self._modules_of(width, depth, ffn, nll))
            for width, depth in zip(widths, depths, strict=True)
        )
        self.pools = nn.ModuleList(
            bare(conv=nn.Conv2d(before, after, 3, 2, padding=1, groups=before))
            for before, after in pairwise(widths)
        )
        self.norm = nn.LayerNorm(widths[-1], eps=EPS)
        self.head = nn.Linear(widths[-1], classes)

    @staticmethod
    def _modules_of(width: int, depth: int, ffn: float, nll: float) -> nn.ModuleList:
        """F, NLL, F, NLL for each block F, which is one module at both places."""
        listed = nn.ModuleList()
        for _ in range(depth):
            block = bare(
                norm1=nn.LayerNorm(width, eps=EPS),
                attn=bare(qkv=nn.Linear(width, 3 * width), proj=nn.Linear(width, width)),
                norm2=nn.LayerNorm(width, eps=EPS),
                mlp=mlp(width, int(ffn * width)),
                **{f"coefficient{at}": Coefficient() for at in (1, 2, 3, 4)},
            )
            for _ in range(2):
                after = bare(
                    norm1=nn.LayerNorm(width, eps=EPS),
                    mlp=mlp(width, int(nll * width)),
                    coefficient1=Coefficient(),
                    coefficient2=Coefficient(),
                )
                listed.extend([block, after])
        return listed

    def forward(self, images: Tensor) -> Tensor:
        x, stem = images, self.patch_embed
        for at in (1, 2, 3):
            x = stem.get_submodule(f"bn{at}")(stem.get_submodule(f"conv{at}")(x)).relu()
        x = x + self.pos_embed
        for stage, transformer in enumerate(self.transformers):
            if stage:
                x = self.pools[stage - 1].conv(x)
            picture = x.shape
            tokens = x.flatten(2).transpose(1, 2)
            for at, module in enumerate(transformer.blocks):
                tokens = self._step(tokens, module, stage, at)
            x = tokens.transpose(1, 2).reshape(picture)
        return self.head(self.norm(x.mean(dim=(2, 3))))

    def _step(self, x: Tensor, module: nn.Module, stage: int, at: int) -> Tensor:
        c1, c2 = module.coefficient1.bias, module.coefficient2.bias
        if at % 2:
            return c1 * x + c2 * run(module.mlp, module.norm1(x))
        second = at % 4 == 2
        mixed = self._attention(module.attn, module.norm1(x), stage, at // 4, second)
        x = c1 * x + c2 * mixed
        c3, c4 = module.coefficient3.bias, module.coefficient4.bias
        return c3 * x + c4 * run(module.mlp, module.norm2(x))

    def _attention(
        self, attn: nn.Module, x: Tensor, stage: int, block: int, second: bool
    ) -> Tensor:
        """Windows of neighbours in the first pass, of permuted tokens in the second."""
        groups, heads = self.groups[stage][second], self.heads[stage]
        tokens = x.shape[1]
        order = torch.arange(tokens)
        if second and groups > 1:
            order = self.order(stage, block, tokens)
        mixed = torch.zeros_like(x)
        for window in order.chunk(groups):
            q, k, v = (heads_of(t, heads) for t in attn.qkv(x[:, window]).chunk(3, dim=-1))
            weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(dim=-1)
            mixed[:, window] = tokens_of(weights @ v)
        return attn.proj(mixed)


def run(mlp: nn.Module, x: Tensor) -> Tensor:
    return mlp.fc2(gelu(mlp.fc1(x)))
