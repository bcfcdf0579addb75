"""Weights of the papers' own code, and of timm, for our networks. Only reading a file needs torch.

Each code has a file with its layout: which networks the code has, what it computes that its paper
does not say, and where each of our tensors is in its state dicts. `checkpoint` reads files. `find`
finds the network of a state dict. `translate` maps a state dict to our names, tensor by tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitnas.nn.zoo.weights.bvit import BvitLayout
from vitnas.nn.zoo.weights.caformer import CaformerLayout
from vitnas.nn.zoo.weights.deepvit import DeepvitLayout
from vitnas.nn.zoo.weights.layout import Layout
from vitnas.nn.zoo.weights.ska import SkaLayout
from vitnas.nn.zoo.weights.small import SmallLayout
from vitnas.nn.zoo.weights.sret import SretLayout
from vitnas.nn.zoo.weights.timm import TimmLayout, from_timm

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LAYOUTS", "Layout", "from_timm"]

LAYOUTS: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        SretLayout(),
        DeepvitLayout(),
        BvitLayout(),
        SkaLayout(),
        SmallLayout(),
        CaformerLayout(),
        TimmLayout(),
    )
}
"""The codes whose weights can be read. The keys are the names for `vitnas convert --from`."""
