"""One training of a batch: what determines its result, and what it gave."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from vitnas.config.baseline import Baseline
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.records import Outcome
from vitnas.sessions import Amount, Count, Facts, Text

Percent = Annotated[float, Field(ge=0.0, le=100.0)]


@dataclass(frozen=True)
class Request:
    """A training to run.

    Attributes:
        subject: the network.
        proxy: how it is trained.
        seed: of its weights, the order of images, the augmentation.
        test: whether it is also scored on the test images, once, after the last epoch.
        zero_cost: whether it is not trained at all, and only scored at initialisation (see
            `vitnas.training.zero_cost`).
        int8: whether the trained network is scored in int8 (see `vitnas.training.proxy.Training`).
        some_classes: whether the images are those of as many classes as the network has, and not
            of all (see `vitnas.training.images.Images.with_classes`).
    """

    subject: ModelConfig | Baseline = field(repr=False)
    proxy: ProxyConfig = field(repr=False)
    seed: int
    test: bool = False
    zero_cost: bool = False
    int8: bool = False
    some_classes: bool = False

    @cached_property
    def key(self) -> str:
        """Twelve hex digits of all of it, on whatever images.

        Of what differs from the defaults, so that a new field of `ProxyConfig` leaves keys alone.
        """
        proxy = self.proxy.model_dump(mode="json", exclude_defaults=True)
        parts = [self.subject.key, proxy, self.seed, self.test]
        parts += [name for name in ("zero_cost", "int8", "some_classes") if getattr(self, name)]
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def can_give(self, answer: Answer) -> bool:
        """Whether an answer has what such a training gives: a complete one all its epochs."""
        if self.zero_cost or answer.outcome is not Outcome.COMPLETE:
            return True
        epochs = self.proxy.epochs
        likelihoods = len(answer.log_likelihoods) in (0, epochs)  # older versions wrote none
        return len(answer.curve) == len(answer.losses) == epochs and likelihoods

    def told(self) -> dict[str, Any]:
        """What is trained and how, as plain values for readers."""
        kind = "baseline" if isinstance(self.subject, Baseline) else "model"
        return {
            kind: self.subject.model_dump(mode="json", exclude_defaults=True),
            "proxy": self.proxy.model_dump(mode="json"),
            "seed": self.seed,
        }


class Answer(Facts):
    """What a training gave.

    Attributes:
        outcome: `complete`, or why it ended before: `failed`, `diverged`, `oom`.
        curve: top-1 in percent on the scoring split after each epoch.
        losses: mean training loss of each epoch, label smoothing included.
        log_likelihoods: on the scoring split after each epoch; see `vitnas.training.score.Score`.
        seconds: wall time.
        device: where, e.g. `cpu` or `NVIDIA H100`.
        test_top1: top-1 in percent on the test images; None where it was not asked for.
        scores: by name, those at initialisation, and the seconds that each took.
        error: one line; None for a complete training.
        flops, num_params: of a reference network; None for others.
    """

    outcome: Annotated[Outcome, Field(strict=False)]
    curve: Annotated[tuple[Percent, ...], Field(strict=False)] = ()
    losses: Annotated[tuple[float, ...], Field(strict=False)] = ()
    log_likelihoods: Annotated[tuple[float, ...], Field(strict=False)] = ()
    seconds: Amount = 0.0
    device: Text = ""
    test_top1: Percent | None = None
    scores: dict[Text, Annotated[tuple[float, Amount], Field(strict=False)]] = Field(
        default_factory=dict
    )
    error: Text | None = None
    flops: Count | None = None
    num_params: Count | None = None

    @property
    def top1(self) -> float | None:
        """After the last epoch; None unless the training is complete."""
        return self.curve[-1] if self.outcome is Outcome.COMPLETE and self.curve else None
