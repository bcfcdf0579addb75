"""What a worker is told: the training to run, and after each epoch whether to go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from vitnas.config.model import ModelConfig


class Decision(str, Enum):
    """What a training does after an epoch."""

    CONTINUE = "continue"
    STOP = "stop"


@dataclass(frozen=True)
class Job:
    """One training to run: everything that determines its result.

    Attributes:
        number: of the trial.
        config: the network.
        seed: of the training.
        alone: whether it shall have its device for itself, having run out of memory on a share.
        again: whether its network is that of an earlier job with another seed: what it costs is
            known and not measured again.
    """

    number: int
    config: ModelConfig = field(repr=False)
    seed: int
    alone: bool = False
    again: bool = False
