"""The base of diagnostics: an observer receives maps and features, keeps sums, and reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose.layers import Layer


@dataclass(frozen=True)
class Finding:
    """The result of one diagnostic.

    Attributes:
        summary: one short line.
        numbers: plain values for JSON; `meaning` explains them.
        figure: a PNG, or None if there is nothing to draw.
    """

    summary: str
    numbers: dict[str, Any] = field(default_factory=dict)
    figure: bytes | None = None


class Observer(ABC):
    """Receives one batch after the other. It keeps only sums and the data of the present batch."""

    def see_map(self, layer: Layer, attention: Tensor) -> None:  # noqa: B027
        """Receive a layer's map `(B, h, N, N)` with tokens in true order. Rows are outputs."""

    def see_features(self, layer: Layer, tokens: Tensor) -> None:  # noqa: B027
        """Receive a layer's output `(B, N, C)`."""

    def end_batch(self) -> None:  # noqa: B027
        """All layers of a batch have been received."""

    @abstractmethod
    def finding(self) -> Finding:
        """The result, with its figure."""


def plain(values: Tensor, digits: int = 6) -> Any:
    """A tensor as nested lists for JSON. Values that are not finite become None."""
    return _plain(values.detach().to("cpu", torch.float64).tolist(), digits)


def _plain(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_plain(item, digits) for item in value]
    return round(value, digits) if isfinite(value) else None
