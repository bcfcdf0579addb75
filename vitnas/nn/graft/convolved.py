"""Static keys in CvT's attention as SKA's code has them: the convolutions are kept."""

from __future__ import annotations

from typing import Any

from torch import nn

from vitnas.config.graft import GraftConfig
from vitnas.nn.graft.attention import Site, StaticKeyGraft
from vitnas.nn.layers.convolved import Convolutions
from vitnas.nn.layers.resizing import TokenLayout


class ConvolvedGraft(StaticKeyGraft):
    """As `StaticKeyGraft`, in `SkaCvT`: it keeps the convolutions of query and value, bit for bit.

    The static key is as long as the values, which the convolution makes fewer. Logits are divided
    by the root of all channels, as before.

    Source: zizhao-hu/SKA, `smallscaleexp/models/cvt_stu.py` and `cvt_cstu.py`.
    """

    def __init__(self, site: Site, config: GraftConfig) -> None:
        super().__init__(site, config)
        old = site.attention
        query, _, value = old.convs
        for name, (conv, norm) in (("query", query), ("value", value)):
            new = self.mixer.convs[name]
            new.conv = conv
            _share(norm, new.norm.norm)
        self.mixer.scale = old.scale if config.qk_scale else 1.0

    def num_keys(self, site: Site) -> int:
        return _convolutions(site).keys(TokenLayout(site.grid, site.prefix)).tokens

    def options(self, site: Site, config: GraftConfig) -> dict[str, Any]:
        return {**super().options(site, config), "convolutions": _convolutions(site)}


def _convolutions(site: Site) -> Convolutions:
    conv = site.attention.convs[2][0]
    return Convolutions(conv.kernel_size[0], conv.stride[0], site.prefix)


def _share(norm: nn.Module, with_norm: nn.Module) -> None:
    """One norm's parameters and statistics become those of another one."""
    for name, tensor in (*norm.named_parameters(), *norm.named_buffers()):
        setattr(with_norm, name, tensor)
    with_norm.train(norm.training)
