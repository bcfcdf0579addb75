"""The proxy's weights of what may be on the front: `weights/<trial>.safetensors` in the run.

Weights of other networks are kept only where `--keep-weights` leaves room: a training is a function
of configuration and seed, so it can be repeated. Those of a network's replicates are kept with its
own, each under its own number: the test images score every training of a front member.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from vitnas.files import own_folder, remove_files, write_bytes
from vitnas.noise import contenders, measure
from vitnas.ranking import chances_by_number, expecting, noise_of
from vitnas.records import TrialRecord, averaged, completed, front_of

_MOST_NEAR, _TOO_MANY = 64, 80  # networks near the front: large weights fill a disk
_WIDE = 4.0  # variance of trainings in binomial ones: what is deleted does not come back


class KeptWeights:
    """The folder `weights/` of a run.

    What is on the front is kept whatever its size.

    Args:
        run: the results folder.
        num_images: of the scoring split. Further trainings may bring other networks to the front by
            expected top-1: the weights of up to 80 of them are kept, too; of more, of the 64 that
            are the likeliest. None = those of the best scores alone.
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
            members |= self._near(trials, self._num_images, costs)
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

    def _near(
        self, trials: Sequence[TrialRecord], num_images: int, costs: Sequence[str]
    ) -> set[int]:
        """Which of those whose weights are there may be on the front. To tell the likeliest takes
        time, so that many are told at once."""
        near = {t.number for t in near_front(trials, num_images, costs) if self.has(t.number)}
        return near if len(near) <= _TOO_MANY else _likeliest(near, trials, num_images, costs)


def _likeliest(
    near: Iterable[int], trials: Iterable[TrialRecord], num_images: int, costs: Sequence[str]
) -> set[int]:
    """The front by expected top-1, and those of `near` that are the likeliest to be on it: by its
    scores alone a network may seem to be far from the front that it is on in the end."""
    known = completed(trials)
    noise = noise_of(known, num_images)
    known = list(expecting(known, noise, costs))
    chances = chances_by_number(known, noise, costs)
    first = sorted(near, key=lambda number: (-chances[number], number))[:_MOST_NEAR]
    return {*first, *(trial.number for trial in front_of(known, costs))}


def near_front(
    trials: Iterable[TrialRecord], num_images: int, costs: Sequence[str]
) -> list[TrialRecord]:
    """The complete candidates that may be on the true front, by their scores alone.

    Replicates to come may show that trainings scatter more than they seem to. So they count as
    scattering twice as far as the number of images gives, or as far as is measured.
    """
    known = completed(trials)
    if not known:
        return []
    scores = [t.trainings for t in known]
    noise = measure(scores, num_images)
    noise = replace(noise, dispersion=max(noise.dispersion, _WIDE))
    near = contenders(scores, [t.minimized(costs) for t in known], noise)
    return [known[index] for index in np.flatnonzero(near)]
