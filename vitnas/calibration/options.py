"""The options of a calibration, declared once. The module stays light: `vitnas --help` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from vitnas.engine.declare import BackendOptions, Option

TIMES = 3
"""By default a long training has so many times the epochs of the proxy."""


@dataclass(frozen=True)
class CalibrationOptions(BackendOptions):
    """How a space's proxy is calibrated."""

    networks: Annotated[
        int, Option("Networks to train, evenly over log FLOPs within the limits.", 4, 10_000)
    ] = 40
    long_epochs: Annotated[
        int | None,
        Option(f"Epochs of a long training; default {TIMES} times those of the proxy.", 2, 10_000),
    ] = None
    seeds: Annotated[
        int, Option("Long trainings of each network; their agreement is the ceiling.", 2, 100)
    ] = 2
