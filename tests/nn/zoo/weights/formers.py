"""MetaFormers in sail-sg's and the SKA paper's code, small and at full size."""

from __future__ import annotations

from torch import nn

from tests.nn.zoo.codes import metaformer as mf
from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.metaformer import Metaformer

WIDTHS, DEPTHS = [32, 64, 96, 128], [1, 1, 2, 1]


MIXERS = {
    "caformer": [mf.SepConv, mf.SepConv, mf.Attention, mf.Attention],
    "convformer": [mf.SepConv] * 4,
    "skaformer": [mf.SepConv, mf.SepConv, mf.Stu, mf.Stu],
    "skaformer with queries": [mf.SepConv, mf.SepConv, mf.StuWithQuery, mf.Attention],
    "cskaformer": [mf.SepConv, mf.Cstu, mf.Attention, mf.Attention],
    "cskaformer with 5x5 keys": [mf.SepConv, mf.Cstu5, mf.Attention, mf.Attention],
}


def official_s18(mixers: list[type[nn.Module]]) -> Metaformer:
    return filled(Metaformer([64, 128, 320, 512], [3, 3, 9, 3], mixers, 224, classes=1000))
