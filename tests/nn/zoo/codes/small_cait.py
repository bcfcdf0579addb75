"""zizhao-hu/SKA's CaiT for small images in its names, which are vit-pytorch's."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from tests.nn.zoo.codes.common import bare, heads_of, tokens_of


class SmallCait(nn.Module):
    """`kind`: attention (vit-pytorch's), stu or cstu. `layer_dropout` is 0."""

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        dim_head: int,
        hidden: int,
        kind: str = "attention",
        class_depth: int = 2,
        img_size: int = 16,
        patch: int = 4,
        classes: int = 7,
        channels: int = 3,
    ) -> None:
        super().__init__()
        self.heads, self.patch, self.kind = heads, patch, kind
        tokens = (img_size // patch) ** 2
        numbers = channels * patch**2
        self.to_patch_embedding = nn.Sequential(nn.Identity(), nn.Linear(numbers, width))
        self.pos_embedding = nn.Parameter(torch.zeros(1, tokens, width))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        for name, count, of_class in (("patch", depth, False), ("cls", class_depth, True)):
            layers = nn.ModuleList()
            for _ in range(count):
                attn = self._parts(width, heads, dim_head, tokens, of_class)
                net = [nn.Linear(width, hidden), nn.GELU(), nn.Dropout(), nn.Linear(hidden, width)]
                both = attn, bare(net=nn.Sequential(*net))
                layers.append(nn.ModuleList(_scaled(part, width) for part in both))
            self.add_module(f"{name}_transformer", bare(layers=layers))
        self.mlp_head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def _parts(
        self, width: int, heads: int, dim_head: int, tokens: int, of_class: bool
    ) -> nn.Module:
        inner = heads * dim_head
        attn = bare(to_out=nn.Sequential(nn.Linear(inner, width)))
        attn.to_q = nn.Linear(width, inner, bias=False)
        if self.kind == "attention":
            attn.to_kv = nn.Linear(width, 2 * inner, bias=False)
        else:
            attn.to_v = nn.Linear(width, inner, bias=False)
            if of_class:
                attn.to_k = nn.Linear(width, inner, bias=False)
            elif self.kind == "stu":
                attn.k = nn.Parameter(torch.zeros(heads, tokens, dim_head))
            else:
                attn.to_k = nn.Conv2d(width, heads * tokens, 3, padding=1, groups=heads)
        for place in ("pre", "post"):
            mix = nn.Parameter(torch.zeros(heads, heads))
            attn.register_parameter(f"mix_heads_{place}_attn", mix)
        return attn

    def forward(self, images: Tensor) -> Tensor:
        x = images.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)
        x = x.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)
        x = self.to_patch_embedding(x) + self.pos_embedding
        for attn, mlp in self.patch_transformer.layers:
            x = self._block(attn, mlp, x, None)
        token = self.cls_token.expand(len(x), -1, -1)
        for attn, mlp in self.cls_transformer.layers:
            token = self._block(attn, mlp, token, x)
        return self.mlp_head(token[:, 0])

    def _block(self, attn: nn.Module, mlp: nn.Module, x: Tensor, context: Tensor | None) -> Tensor:
        x = x + attn.scale * self._attention(attn.fn.fn, attn.fn.norm(x), context)
        net = mlp.fn.fn.net
        return x + mlp.scale * net[3](gelu(net[0](mlp.fn.norm(x))))

    def _attention(self, attn: nn.Module, x: Tensor, context: Tensor | None) -> Tensor:
        every = x if context is None else torch.cat([x, context], dim=1)
        q = heads_of(attn.to_q(x), self.heads)
        scale = q.shape[-1] ** -0.5
        if self.kind == "attention":
            k, v = (heads_of(part, self.heads) for part in attn.to_kv(every).chunk(2, dim=-1))
            dots = q @ k.mT * scale
        else:
            v = heads_of(attn.to_v(every), self.heads)
            dots = self._dots(attn, q, every, scale, context is not None)
        dots = torch.einsum("bhij,hg->bgij", dots, attn.mix_heads_pre_attn).softmax(dim=-1)
        maps = torch.einsum("bhij,hg->bgij", dots, attn.mix_heads_post_attn)
        return attn.to_out(tokens_of(maps @ v))

    def _dots(
        self, attn: nn.Module, q: Tensor, every: Tensor, scale: float, of_class: bool
    ) -> Tensor:
        if of_class:
            return q @ heads_of(attn.to_k(every), self.heads).mT * scale
        if self.kind == "stu":
            return q @ attn.k.mT * scale
        side = round(q.shape[2] ** 0.5)
        grid = attn.to_k(tokens_of(q).mT.unflatten(2, (side, side)))
        return grid.flatten(2).unflatten(1, (self.heads, -1)).mT


def _scaled(part: nn.Module, width: int) -> nn.Module:
    layer = bare(fn=bare(norm=nn.LayerNorm(width), fn=part))
    layer.scale = nn.Parameter(torch.zeros(1, 1, width))
    return layer
