"""What a check found, as plain values; no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

POINT = 1.0
"""Points of top-1 that int8 may lose before its parts are looked at."""


@dataclass(frozen=True)
class Form:
    """A network's file in one kind of numbers.

    Attributes:
        top1: in percent.
        bytes: of the file.
        lost: points of top-1 that the float network is better, on the same images.
        error: the standard error of `lost` in points, from the number of images: as of one image
            that changes at least.
        changed: percent of the images whose likeliest class is another one than the float
            network's.
    """

    top1: float
    bytes: int
    lost: float = 0.0
    error: float = 0.0
    changed: float = 0.0


@dataclass(frozen=True)
class Timing:
    """Milliseconds of a batch, the median of many.

    Attributes:
        batch: images of it.
        threads: of the CPU.
        ms: by what runs it: `pytorch`, `onnx`, `int8` and, with kernels for it, `fp16`.
    """

    batch: int
    threads: int
    ms: Mapping[str, float]

    def faster(self, name: str) -> float | None:
        """How many times as fast as eager PyTorch; None where it was not timed."""
        return self.ms["pytorch"] / self.ms[name] if name in self.ms else None


@dataclass(frozen=True)
class Remedy:
    """int8 with some parts left in float.

    Attributes:
        parts: those parts, in the order in which they were chosen; none where none helped.
        nodes: how many operators of the file that is.
        form: what it comes to.
        gains: by part, percent of the training images with another answer than the float network's
            when this part alone stays in float; `""`: when none does.
    """

    parts: tuple[str, ...]
    nodes: int
    form: Form
    gains: Mapping[str, float]


@dataclass(frozen=True)
class NetworkCheck:
    """What a check found of one network.

    Attributes:
        name: its folder, or `trial 7`.
        trial: its number in a run; None of a folder.
        line: the network.
        flops, num_params: of it.
        forms: by name: `float`, `int8`, `fp16`.
        timings: of each size of a batch and number of threads.
        changed: by token mixer, percent of training images whose answer changes where the operators
            of this mixer alone are int8.
        refused: by delegate, the operators that its list does not have, with their number.
        operators: in all, by delegate.
        remedy: None where int8 loses at most `POINT`.
    """

    name: str
    trial: int | None
    line: str
    flops: int
    num_params: int
    forms: Mapping[str, Form]
    timings: tuple[Timing, ...]
    changed: Mapping[str, float]
    refused: Mapping[str, Mapping[str, int]]
    operators: Mapping[str, int]
    remedy: Remedy | None = None


@dataclass(frozen=True)
class DeployCheck:
    """What a check found.

    Attributes:
        subject: what was checked: a folder or a run.
        images: which images were scored, in words, and `num_images` how many.
        calibration: how many training images int8 was calibrated on, and `training` on how many
            others answers are compared.
        networks: by rising FLOPs.
        verdict: whether a token mixer loses more with int8, as far as that was measured.
        notes: lines on how images and classes were taken.
        facts: versions and hardware.
    """

    subject: str
    images: str
    num_images: int
    calibration: int
    training: int
    networks: tuple[NetworkCheck, ...]
    verdict: str
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"format": 1, **asdict(self)}
