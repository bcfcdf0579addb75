"""A space's limits, checked against exactly known costs before anything is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vitnas.config.notation import human

if TYPE_CHECKING:
    from vitnas.config.space import Limits


class Priced(Protocol):
    """Whatever knows what a network costs."""

    @property
    def flops(self) -> int: ...
    @property
    def num_params(self) -> int: ...


def over_limits(cost: Priced, limits: Limits) -> str | None:
    """Why a network of this cost is outside the limits, in one line, or None.

    Args:
        cost: FLOPs (multiply-adds of one image) and trainable parameters, e.g. a `Cost`.
        limits: both ends included.
    """
    for name in ("flops", "num_params"):
        value, bounds = getattr(cost, name), getattr(limits, name)
        if bounds.max is not None and value > bounds.max:
            return f"{name} {human(value)} is above the limit {human(bounds.max)}"
        if bounds.min is not None and value < bounds.min:
            return f"{name} {human(value)} is below the limit {human(bounds.min)}"
    return None
