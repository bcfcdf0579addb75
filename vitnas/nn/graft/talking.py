"""CaiT as SKA's code has it: talking heads of any width, and static keys that keep them."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import torch
from timm.models.cait import Cait, LayerScaleBlockClassAttn
from torch import Tensor, nn
from torch.nn.functional import linear

from vitnas.config.graft import GraftConfig
from vitnas.nn.graft.attention import Mixers, Site, StaticKeyGraft
from vitnas.nn.mixers.attention import AttentionMixer
from vitnas.nn.mixers.cska import ConvStaticKeyAttention
from vitnas.nn.mixers.ska import StaticKeyAttention


class TalkingAttention(nn.Module):
    """W softmax(L Q K^T / sqrt(d)) V, where L and W mix the maps of the heads and have no bias.

    Source: talking heads (Shazeer et al. 2020) in vit-pytorch's form, which SKA's code has.

    Args:
        dim: channels C.
        num_heads: heads h.
        head_dim: channels d of a head.
        qkv_bias: whether query, key and value have a bias.
        attn_drop, proj_drop: dropout on the map, and after the projection.
        device, dtype: timm passes them; the network is built on the default device.

    Shape: `(B, N, C)` -> `(B, N, C)`; with a context `(B, M, C)`, keys and values are of both.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        head_dim: int,
        qkv_bias: bool = False,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        device: None = None,
        dtype: None = None,
    ) -> None:
        super().__init__()
        self.num_heads, self.scale, self.fused_attn = num_heads, head_dim**-0.5, False
        self.qkv = nn.Linear(dim, 3 * num_heads * head_dim, bias=qkv_bias)
        self.proj_l = nn.Linear(num_heads, num_heads, bias=False)
        self.proj_w = nn.Linear(num_heads, num_heads, bias=False)
        self.attn_drop, self.proj_drop = nn.Dropout(attn_drop), nn.Dropout(proj_drop)
        self.proj = nn.Linear(num_heads * head_dim, dim)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        every = x if context is None else torch.cat([x, context], dim=1)
        bias = self.qkv.bias
        biases = [None] * 3 if bias is None else bias.chunk(3)
        parts = zip((x, every, every), self.qkv.weight.chunk(3), biases, strict=True)
        query, key, value = (
            torch.unflatten(linear(*part), 2, (self.num_heads, -1)).transpose(1, 2)
            for part in parts
        )
        logits = mix_heads(self.proj_l, self.scale * query @ key.transpose(-2, -1))
        attention = self.attn_drop(mix_heads(self.proj_w, logits.softmax(dim=-1)))
        out: Tensor = self.proj_drop(self.proj((attention @ value).transpose(1, 2).flatten(2)))
        return out


class TalkingClassAttention(TalkingAttention):
    """As `TalkingAttention`, of the class token alone; it never changes."""


class TalkingClassBlock(LayerScaleBlockClassAttn):  # type: ignore[misc]
    """Class attention whose norm is over the class token alone: the other tokens have none."""

    def forward(self, x: Tensor, x_cls: Tensor) -> Tensor:
        mixed = self.attn(self.norm1(x_cls), x)
        x_cls = x_cls + self.drop_path(self.gamma_1 * mixed)
        out: Tensor = x_cls + self.drop_path(self.gamma_2 * self.mlp(self.norm2(x_cls)))
        return out


class SkaCait(Cait):  # type: ignore[misc]
    """timm's CaiT with the blocks of SKA's code: images `(B, C, H, W)` -> `(B, num_classes)`.

    Source: zizhao-hu/SKA, `smallscaleexp/models/cait_*.py`, after vit-pytorch's `cait.py`. It
    differs from timm's: heads of any width, mixing without biases also in class attention, no norm
    over the tokens that the class token looks at, and norms with epsilon 1e-5.

    Args:
        embed_dim, num_heads: channels and heads.
        head_dim: channels of a head.
        **options: as of timm's `Cait`.
    """

    def __init__(self, embed_dim: int, num_heads: int, head_dim: int = 64, **options: Any) -> None:
        super().__init__(
            embed_dim=embed_dim,
            num_heads=num_heads,
            norm_layer=nn.LayerNorm,
            attn_block=partial(TalkingAttention, head_dim=head_dim),
            attn_block_token_only=partial(TalkingClassAttention, head_dim=head_dim),
            block_layers_token=TalkingClassBlock,
            **options,
        )


class Talking(AttentionMixer):
    """A static-key mixer whose maps are mixed across heads, before and after softmax.

    Attributes:
        proj_l, proj_w: what mixes them; set by the graft.
    """

    proj_l: nn.Linear
    proj_w: nn.Linear

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return self._apply_map(self._map_of(query, key), value)

    def _map(self, logits: Tensor) -> Tensor:
        return mix_heads(self.proj_w, super()._map(mix_heads(self.proj_l, logits)))


class TalkingSka(Talking, StaticKeyAttention):
    """`ska` with talking heads."""


class TalkingCska(Talking, ConvStaticKeyAttention):
    """`cska` with talking heads."""


class TalkingGraft(StaticKeyGraft):
    """As `StaticKeyGraft`, in `SkaCait`: it also keeps what mixes the maps across heads.

    Source: zizhao-hu/SKA, `smallscaleexp/models/cait_stu.py` and `cait_cstu.py`.
    """

    mixers: ClassVar[Mixers] = {"ska": TalkingSka, "cska": TalkingCska}

    def __init__(self, site: Site, config: GraftConfig) -> None:
        super().__init__(site, config)
        self.mixer.proj_l, self.mixer.proj_w = site.attention.proj_l, site.attention.proj_w


def mix_heads(layer: nn.Module, maps: Tensor) -> Tensor:
    """A linear layer across heads: `(B, h, N, M)` -> the same."""
    mixed: Tensor = layer(maps.permute(0, 2, 3, 1))
    return mixed.permute(0, 3, 1, 2)
