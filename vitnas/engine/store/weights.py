"""The proxy's weights of what may be on the front: `weights/<trial>.safetensors` in the run.

Weights of other networks are kept only where `--keep-weights` leaves room: a training is a function
of configuration and seed, so it can be repeated. Those of a network's replicates are kept with its
own, each under its own number: the test images score every training of a front member.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from vitnas.files import own_folder, remove_files, write_bytes
from vitnas.noise import contenders, measure
from vitnas.pareto import front_ranks
from vitnas.records import TrialRecord, averaged, completed, front_of

_MOST_NEAR = 64  # networks near the front whose weights are kept: large ones fill a disk


class KeptWeights:
    """The folder `weights/` of a run.

    What is on the front is kept whatever its size.

    Args:
        run: the results folder.
        num_images: of the scoring split. Further trainings may bring other networks to the front by
            expected top-1: the weights of up to 64 of them are kept, too. None = those of the best
            scores alone.
        room: size in bytes up to which other networks' weights are kept, too, the newest first.
    """

    def __init__(self, run: Path, num_images: int | None = None, room: int = 0) -> None:
        self.folder, self._num_images, self._room = run / "weights", num_images, room

    def path(self, number: int) -> Path:
        return self.folder / f"{number}.safetensors"

    def put(self, number: int, content: bytes) -> None:
        """Store the weights of trial `number`, whole or not at all."""
        own_folder(self.folder)
        write_bytes(self.path(number), content)

    def has(self, number: int) -> bool:
        """Whether the weights of trial `number` are kept."""
        return self.path(number).is_file()

    def get(self, number: int) -> bytes | None:
        """The weights of trial `number`, or None when they are not kept."""
        return self.path(number).read_bytes() if self.has(number) else None

    def clean(self, trials: Iterable[TrialRecord], costs: Sequence[str]) -> None:
        """Delete the weights of every trial that is no longer on the front of top-1 and `costs`,
        nor may be, and for which there is no room. Files that are no trial's stay."""
        trials = tuple(trials)
        members = {trial.number for trial in front_of(averaged(trials), costs)}
        if self._num_images is not None:
            members |= {t.number for t in near_front(trials, self._num_images, costs)}
        members |= {trial.number for trial in trials if trial.replicate_of in members}
        there = [trial for trial in trials if self.has(trial.number)]
        there.sort(key=lambda t: (t.number in members, t.ended or 0.0, t.number), reverse=True)
        sizes = accumulate(self.path(trial.number).stat().st_size for trial in there)
        others = [
            self.path(trial.number).name
            for trial, size in zip(there, sizes, strict=True)
            if trial.number not in members and size > self._room
        ]
        remove_files(self.folder, others)


def near_front(
    trials: Iterable[TrialRecord], num_images: int, costs: Sequence[str]
) -> list[TrialRecord]:
    """The complete candidates that may be on the true front; of many, the ones nearest to it."""
    known = completed(trials)
    if not known:
        return []
    scores = [t.trainings for t in known]
    near = contenders(scores, [t.minimized(costs) for t in known], measure(scores, num_images))
    found = [known[index] for index in np.flatnonzero(near)]
    ranks = front_ranks([trial.point(costs) for trial in found])
    return [found[index] for index in np.argsort(ranks, kind="stable")[:_MOST_NEAR]]
