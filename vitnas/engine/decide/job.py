"""What the controller and a worker exchange: the worker gets a job and sends messages, and after
each message the controller says whether to continue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from vitnas.config.model import ModelConfig
from vitnas.records import Outcome


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
        alone: whether it trains alone on its device, because it ran out of memory on a share.
        again: whether an earlier job trained its network with another seed; then its costs are
            known and not measured again.
    """

    number: int
    config: ModelConfig = field(repr=False)
    seed: int
    alone: bool = False
    again: bool = False


@dataclass(frozen=True)
class Measured:
    """What a network costs on a device; said before the first epoch.

    Attributes:
        costs: amounts by name (see `vitnas.config.costs`).
        device: its name.
    """

    costs: Mapping[str, float]
    device: str


@dataclass(frozen=True)
class EpochDone:
    """An epoch has ended.

    Attributes:
        epoch: from 1.
        top1: percent on the scoring split.
        seconds: wall time since the training started.
        device: name of the device it runs on.
        weights: the network as safetensors bytes, with the last epoch only.
        float_top1: see `TrialRecord`; with the last epoch only.
    """

    epoch: int
    top1: float
    seconds: float
    device: str = ""
    weights: bytes | None = field(default=None, repr=False)
    float_top1: float | None = None


@dataclass(frozen=True)
class Failure:
    """The training cannot continue; its last message.

    Attributes:
        outcome: why: `failed`, `diverged` or `oom`.
        error: one line.
        seconds: wall time since the training started.
        device: name of the device it ran on.
    """

    outcome: Outcome
    error: str
    seconds: float = 0.0
    device: str = ""


Message = Measured | EpochDone | Failure
