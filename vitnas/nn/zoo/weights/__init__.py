"""Weights of the papers' own code, and of timm, in our networks; no torch before one is read.

A layout a file: which networks a code has, what it computes that its paper does not say, and where
each of our tensors is in its state dicts. `checkpoint` reads files, `find` says which network a
state dict is of, `translate` brings it into our names with every tensor accounted for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitnas.nn.zoo.weights.bvit import BvitLayout
from vitnas.nn.zoo.weights.caformer import CaformerLayout
from vitnas.nn.zoo.weights.deepvit import DeepvitLayout
from vitnas.nn.zoo.weights.layout import Layout
from vitnas.nn.zoo.weights.ska import SkaLayout
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
        CaformerLayout(),
        TimmLayout(),
    )
}
"""The codes whose weights can be read, by what `vitnas convert --from` calls them."""
