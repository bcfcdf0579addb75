"""A table: networks of a space that were all trained to the end, with their curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.engine.samplers.pool import Proposal
from vitnas.noise import binomial_error
from vitnas.pareto import front, hypervolume
from vitnas.records import Outcome
from vitnas.seeds import derive_seed

LEFT_OUT = "left_out"
"""In `Table.made`: how many networks of the run have no accuracy after the last epoch: they were
stopped early, or failed."""


@dataclass(frozen=True)
class RecordedTraining:
    """A training of a network.

    Attributes:
        curve: top-1 in percent after each epoch.
        outcome: complete, or what happened in the epoch after the last one of the curve.
        seconds: its wall time.
    """

    curve: tuple[float, ...]
    outcome: Outcome = Outcome.COMPLETE
    seconds: float = 1.0

    @property
    def is_complete(self) -> bool:
        return self.outcome is Outcome.COMPLETE

    @property
    def length(self) -> int:
        """Number of epochs that were started."""
        return len(self.curve) + (not self.is_complete)


@dataclass(frozen=True)
class Recorded:
    """A network of a table.

    Attributes:
        config: the network.
        proposal: its costs, and the draw that gives it.
        trainings: with one seed each; at least one.
    """

    config: ModelConfig
    proposal: Proposal
    trainings: tuple[RecordedTraining, ...]

    @property
    def scores(self) -> tuple[float, ...]:
        """Top-1 in percent of each training that reached its end."""
        return tuple(one.curve[-1] for one in self.trainings if one.is_complete)

    @property
    def top1(self) -> float:
        """Their mean: what counts as the truth. There must be one."""
        return fmean(self.scores)

    def training_of(self, seed: int) -> RecordedTraining:
        """The one that a search with this seed has of it; any is as likely, in each network by
        itself."""
        return self.trainings[derive_seed(seed, self.proposal.key) % len(self.trainings)]


@dataclass(frozen=True)
class Table:
    """Networks of a space that were all trained to the end.

    Attributes:
        space: the space of the networks.
        networks: the networks; none is in it twice.
        made: how the table was made: command, versions, hardware.
    """

    space: SearchSpace
    networks: tuple[Recorded, ...]
    made: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def epochs(self) -> int:
        """Number of epochs of a training."""
        return self.space.config.proxy.epochs

    @cached_property
    def complete(self) -> tuple[Recorded, ...]:
        """The networks that have an accuracy after the last epoch."""
        return tuple(network for network in self.networks if network.scores)

    @cached_property
    def front(self) -> frozenset[str]:
        """Keys of the networks on the whole table's front."""
        ends = self.complete
        chosen = front([(-n.top1, float(n.proposal.flops)) for n in ends])
        return frozenset(ends[index].proposal.key for index in chosen)

    @property
    def chance(self) -> float:
        """Top-1 in percent of a network that guesses."""
        return 100 / self.networks[0].config.num_classes

    @property
    def worst(self) -> float:
        """Top-1 in percent of the worst network that was trained to the end."""
        return min(network.top1 for network in self.complete)

    @property
    def spread(self) -> float:
        """Standard deviation of the networks' top-1, in points."""
        return float(np.std([network.top1 for network in self.complete]))

    @property
    def num_images(self) -> int | None:
        """Number of images on which top-1 was measured; None if it is not known."""
        data = self.made.get("data")
        number = data.get("num_val_images") if isinstance(data, Mapping) else None
        return number if isinstance(number, int) and number > 0 else None

    @property
    def left_out(self) -> int:
        """How many networks of the run are not in the table, because they were stopped early or
        failed; 0 where it does not say."""
        number = self.made.get(LEFT_OUT)
        return number if isinstance(number, int) else 0

    @property
    def standard_error(self) -> float | None:
        """Standard error of a top-1 in points; None if the number of images is not known.

        It is the binomial error from the number of images, as root mean square over networks.
        """
        if self.num_images is None:
            return None
        errors = [binomial_error(network.top1, self.num_images) for network in self.complete]
        return float(np.sqrt(np.square(errors).mean()))

    @property
    def scatter(self) -> float | None:
        """Standard deviation in points of trainings of one network, pooled; None where none was
        trained twice."""
        repeated = [network.scores for network in self.complete if len(network.scores) > 1]
        if not repeated:
            return None
        squares = sum(float(np.var(scores)) * len(scores) for scores in repeated)
        return math.sqrt(squares / sum(len(scores) - 1 for scores in repeated))

    @cached_property
    def most_flops(self) -> int:
        return max(network.proposal.flops for network in self.networks)

    def volume(self, flops: npt.ArrayLike, top1: npt.ArrayLike, floor: float) -> float:
        """Hypervolume of networks in top-1 and log FLOPs.

        It counts top-1 above `floor` percent, and FLOPs up to those of the most expensive network.
        """
        points = np.stack([np.log(flops), -np.asarray(top1, dtype=np.float64)], axis=-1)
        return hypervolume(points, (math.log(self.most_flops), -floor))
