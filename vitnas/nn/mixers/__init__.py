"""Token mixers: each has a file and a class here, and an entry in `config/mixers.py`."""

from __future__ import annotations

from vitnas.config.mixers import MixerFacts, MixerOptions, mixer_named
from vitnas.nn.mixers.base import Place, Tap, TokenMixer
from vitnas.plugins import load

__all__ = [
    "MixerFacts",
    "MixerOptions",
    "Place",
    "Tap",
    "TokenMixer",
    "build_mixer",
    "mixer_class",
]


def mixer_class(name: str) -> type[TokenMixer]:
    """The class of the token mixer with this name in a configuration.

    Raises:
        ConfigError: there is no such mixer, or its package is not installed.
    """
    found: type[TokenMixer] = load(mixer_named(name).path)
    return found


def build_mixer(place: Place) -> TokenMixer:
    """The token mixer of the block at `place`, with fresh weights."""
    (mixer,) = place.stage_config.kinds
    return mixer_class(mixer).at(place)
