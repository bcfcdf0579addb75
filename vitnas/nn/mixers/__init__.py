"""Token mixers by name: one name, one file, one class, one entry in the table."""

from __future__ import annotations

from vitnas.nn.mixers.base import Place, Tap, TokenMixer
from vitnas.nn.mixers.cska import ConvStaticKeyAttention
from vitnas.nn.mixers.dwconv import SeparableConv
from vitnas.nn.mixers.identity import Identity
from vitnas.nn.mixers.mhsa import MultiHeadSelfAttention
from vitnas.nn.mixers.mlp import TokenMlp
from vitnas.nn.mixers.pool import Pool
from vitnas.nn.mixers.ska import StaticKeyAttention

MIXERS: dict[str, type[TokenMixer]] = {
    "mhsa": MultiHeadSelfAttention,
    "ska": StaticKeyAttention,
    "cska": ConvStaticKeyAttention,
    "dwconv": SeparableConv,
    "mlp": TokenMlp,
    "pool": Pool,
    "identity": Identity,
}
"""The table of mixers; its keys are `StageConfig.token_mixer`'s."""

__all__ = ["MIXERS", "Place", "Tap", "TokenMixer", "build_mixer"]


def build_mixer(place: Place) -> TokenMixer:
    """The token mixer of the block at `place`, with fresh weights."""
    return MIXERS[place.stage_config.token_mixer].at(place)
