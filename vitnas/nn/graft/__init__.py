"""Grafts: other attention in existing networks of timm. `graft` says what can be changed."""

from vitnas.nn.graft.apply import Grafted, graft
from vitnas.nn.graft.families import family_of
from vitnas.nn.graft.networks import build_network

__all__ = ["Grafted", "build_network", "family_of", "graft"]
