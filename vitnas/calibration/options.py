"""The options of a calibration, declared once. The module stays light: `vitnas --help` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from vitnas.engine.declare import (
    BackendName,
    GpusPerTrial,
    Option,
    Options,
    RayAddress,
    Workers,
    check,
    documented,
)

TIMES = 3
"""Epochs of a long training, in those of the proxy, where nothing is said."""


@dataclass(frozen=True)
class CalibrationOptions(Options):
    """How a space's proxy is calibrated.

    Raises:
        ConfigError: a value has the wrong type or is out of range; names the nearest valid one.
    """

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
    workers: Workers = None
    gpus_per_trial: GpusPerTrial = None
    backend: BackendName = "tune"
    ray_address: RayAddress = None

    def __post_init__(self) -> None:
        check(type(self), vars(self))


CalibrationOptions.__doc__ = documented(CalibrationOptions)
