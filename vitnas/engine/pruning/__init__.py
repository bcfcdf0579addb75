"""Early stopping for several objectives, and the learning curves that it extrapolates."""

from typing import Literal

PrunerName = Literal["none", "front", "curve", "both"]
PRUNERS: tuple[PrunerName, ...] = ("none", "front", "curve", "both")
DEFAULT_PRUNER: PrunerName = "curve"
CONFIDENCE = 0.98
