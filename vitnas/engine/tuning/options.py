"""The options of `vitnas tune`, declared once; the module stays light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from vitnas.engine.declare import BackendOptions, Option


@dataclass(frozen=True)
class TuneOptions(BackendOptions):
    """How the recipe of a space's short training is looked for."""

    trials: Annotated[
        int, Option("Recipes to try; the space's own is the first of them.", 2, 10_000)
    ] = 20
    networks: Annotated[
        int, Option("Networks that a recipe is tried on, spread over log FLOPs and mixers.", 1, 100)
    ] = 4
    seeds: Annotated[
        int,
        Option(
            "Trainings of each network by the best recipe and by the space's own in the last "
            "comparison.",
            1,
            100,
        ),
    ] = 3
    front_of: Annotated[
        str | None,
        Option(
            "A results folder: its front's networks, spread over log FLOPs, in place of networks "
            "drawn from the space. What a search has chosen may want another recipe than a "
            "network at random."
        ),
    ] = None
    minutes: Annotated[
        float | None,
        Option(
            "Try nothing more after so many minutes; the last comparison of the best recipe with "
            "the space's own comes on top.",
            0,
            1e6,
        ),
    ] = None
    epochs: Annotated[
        int | None, Option("Epochs of each training; default the space's own.", 1, 10_000)
    ] = None
    seed: Annotated[
        int, Option("Seed of the networks, the proposals and the trainings.", 0, 2**63 - 1)
    ] = 0
