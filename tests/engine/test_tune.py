"""What Ray sees of our parts; whole searches through it are in test_backends."""

from __future__ import annotations

from typing import Any

from ray import cloudpickle

from vitnas.engine.steering import Steering
from vitnas.engine.tune import _ControllerScheduler, _JobSearcher


class Unpicklable:
    """Stands for a study, or for a display on a terminal."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


def test_nothing_of_the_driver_is_pickled() -> None:
    """Tune pickles searcher and scheduler at the start, and a live display cannot be."""
    steering = Steering(Unpicklable(), Unpicklable())  # type: ignore[arg-type]
    for part in (_JobSearcher(steering, 2), _ControllerScheduler(steering)):
        cloudpickle.dumps(part)
