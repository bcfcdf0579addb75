"""A reference network by family and width: what it is, and its file. No torch."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field

from vitnas.config.files import validate
from vitnas.config.parts import Frozen, as_tuple

Positive = Annotated[int, Field(ge=1, le=1_000_000)]
LIKE_FLOPS = 1.5
"""Largest factor between the FLOPs of a baseline and of what it is compared with."""


class Baseline(Frozen):
    """One member of a family of reference networks; what a baseline.yaml holds.

    Attributes:
        family: its name in `vitnas.baselines.families.FAMILIES`.
        width: what the family scales by; more is larger.
        image_hw: (H, W) of an image in pixels.
        in_chans: channels of an image.
        num_classes: classes.
    """

    family: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    width: Positive
    image_hw: Annotated[tuple[Positive, Positive], BeforeValidator(as_tuple)]
    in_chans: Positive
    num_classes: Positive

    @property
    def key(self) -> str:
        """Twelve hex digits, other ones for another network."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """Short, for people: `dwcnn-24`."""
        return f"{self.family}-{self.width}"

    def line(self) -> str:
        """The network in one line, for people."""
        return f"baseline {self.name}"

    def to_tree(self) -> dict[str, Any]:
        """Its file as a plain tree."""
        return self.model_dump(mode="json")

    def changed(self, **fields: Any) -> Baseline:
        """The same member for other images or classes.

        Raises:
            ConfigError: a field has no such value.
        """
        return validate(Baseline, {**self.model_dump(), **fields})


class PricedBaseline(NamedTuple):
    """A reference network and what it costs.

    Attributes:
        baseline: the network.
        flops: multiply-adds of one image, as of a candidate.
        num_params: trainable parameters.
    """

    baseline: Baseline
    flops: int
    num_params: int
