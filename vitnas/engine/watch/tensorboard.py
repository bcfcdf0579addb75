"""TensorBoard's files of a search, on demand: a curve for each trial, and the run's own.

tensorboard --logdir results/<run>/tensorboard
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vitnas.config.costs import COSTS, DEFAULT_COSTS, cost_of
from vitnas.ranking import front_now
from vitnas.records import TrialRecord
from vitnas.training.events import Events, check_package


class Curves:
    """Writes the changes of a controller; give it `listen`, and use this object as a context.

    A trial's folder `<number>` gets `top1` (percent on the scoring split) by epoch and, when it
    ends, its costs (`flops`, `num_params` and what was measured) and `seconds`. The folder `run`
    gets `best_top1` (of the front) and `front_size` by the number of ended trainings. What an
    earlier session wrote of ended trials stays; a trial that is trained again starts its folder
    again.

    Args:
        folder: where to write.
        costs: those among the objectives.
        num_images: of the scoring split; None = unknown: then scores rank.
    """

    def __init__(
        self,
        folder: Path,
        costs: Sequence[str] = DEFAULT_COSTS,
        num_images: int | None = None,
    ) -> None:
        check_package()
        self.folder, self._costs, self._num_images = folder, costs, num_images
        self._open: dict[str, Events] = {}
        self._ended: list[TrialRecord] = []

    def __enter__(self) -> Curves:
        return self

    def __exit__(self, *exception: object) -> None:
        for name in list(self._open):
            self._close(name)

    def listen(self, event: str, trial: TrialRecord) -> None:
        """Take a change from the controller."""
        name = str(trial.number)
        if event == "start":
            self._close(name)
            Events(self.folder / name).forget()
        elif event == "epoch":
            self._write(name, trial.epochs, top1=trial.top1 or 0.0)
        elif event in ("end", "known") and trial.outcome.is_trial:
            self._end(event, trial)

    def _end(self, event: str, trial: TrialRecord) -> None:
        self._ended.append(trial)
        if event == "known":
            return
        tags = {**{name: cost_of(trial, name) for name in COSTS}, "seconds": trial.seconds}
        known = {tag: float(value) for tag, value in tags.items() if value is not None}
        name = str(trial.number)
        self._write(name, trial.epochs, **({"seconds": 0.0} | known))
        self._close(name)
        members = front_now(self._ended, self._num_images, self._costs)
        best = {"best_top1": max(one.top1 or 0.0 for one in members)} if members else {}
        self._write("run", len(self._ended), front_size=float(len(members)), **best)

    def _write(self, name: str, step: int, **values: float) -> None:
        """Add values by tag to the file in the folder `name`."""
        if name not in self._open:
            self._open[name] = Events(self.folder / name)
        self._open[name].write(step, values)

    def _close(self, name: str) -> None:
        events = self._open.pop(name, None)
        if events is not None:
            events.close()
