"""The long trainings of a run's networks: a file in its folder to which lines are only added."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from vitnas.errors import RunError, reason_of
from vitnas.files import append_line, check_writable, read_bytes, writing
from vitnas.sessions import Amount, Count, Facts, Text

FILE_NAME = "long.jsonl"
PROXY = "proxy"
"""The recipe's name where it is the run's own."""
_MOST_BYTES = 1 << 28
_Percent = Annotated[float, Field(ge=0.0, le=100.0)]


class LongTraining(Facts):
    """A line of the file: a training that reached its last epoch.

    Attributes:
        trial: number of the trial whose network was trained; None for a baseline.
        baseline: its name, as `vgg-17`; empty for a trial.
        flops: multiply-adds of one image of a baseline; None for a trial.
        key: of this network.
        top1: percent on the scoring images after the last epoch.
        test_top1: percent on the test images; None where there are none.
        epochs: of the training.
        seed: of first weights, order, augmentation and dropout.
        recipe: its name.
        weights: where the first weights come from, as `timm:resnet10t.c3_in1k`; empty: from
            nothing.
        lr: peak learning rate by the run's recipe, where it is another one than the trials have.
        setting: twelve hex digits of all that this training has in common with those that it can
            be compared with: recipe, images and first weights (see `setting_of`).
        seconds: wall time of its epochs, those before a kill included.
        device: where, e.g. `cpu`.
        ended: when, seconds since 1970.
        folder: where the network was written.
    """

    trial: Count | None = None
    baseline: Text = ""
    flops: Count | None = None
    key: Text
    top1: _Percent
    test_top1: _Percent | None = None
    epochs: Annotated[int, Field(ge=1)]
    seed: int
    recipe: Text
    weights: Text = ""
    lr: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    setting: Text
    seconds: Amount
    device: Text = ""
    ended: Amount = 0.0
    folder: Text = ""

    @model_validator(mode="after")
    def _is_of_one(self) -> LongTraining:
        if (self.trial is None) != bool(self.baseline) or (self.trial is None) == (not self.flops):
            raise ValueError("is of a trial, or of a baseline with FLOPs")
        return self

    @property
    def called(self) -> str:
        """`trial 7` or `baseline vgg-17`."""
        return called(self.trial, self.baseline)


@dataclass(frozen=True)
class LongResult:
    """A network after its long trainings of one setting.

    Attributes:
        trial, baseline, flops, key, epochs, recipe, weights, lr, setting: see `LongTraining`.
        seeds: of these trainings, in the order of the file.
        top1: percent on the scoring images, the mean over the seeds.
        test_top1: the same on the test images; None where one of the trainings has none.
        seconds: of one training, the mean over the seeds.
        all_top1, all_test_top1: of each training; the latter is empty where one has none.
    """

    trial: int | None
    baseline: str
    flops: int | None
    key: str
    epochs: int
    recipe: str
    weights: str
    lr: float | None
    setting: str
    seeds: tuple[int, ...]
    top1: float
    test_top1: float | None
    seconds: float
    all_top1: tuple[float, ...]
    all_test_top1: tuple[float, ...]

    @property
    def called(self) -> str:
        """`trial 7` or `baseline vgg-17`."""
        return called(self.trial, self.baseline)

    @property
    def started(self) -> str:
        """`baseline timm:resnet10t from the weights timm:resnet10t.c3_in1k`, `trial 7 at lr 0.016`,
        or as `called`."""
        if self.weights:
            return f"{self.called} from the weights {self.weights}"
        return self.called if self.lr is None else f"{self.called} at lr {self.lr:g}"


@dataclass(frozen=True)
class LongTrainings:
    """What a run's file tells.

    Attributes:
        trainings: in the order of the file. Of one network, learning rate, seed and setting the
            last one.
        unread: which lines do not count and why, as `line 3 (is damaged)`.
    """

    trainings: tuple[LongTraining, ...] = ()
    unread: tuple[str, ...] = ()

    @cached_property
    def settings(self) -> tuple[tuple[LongResult, ...], ...]:
        """The networks of each setting, once for each learning rate: trials by number, then
        baselines by name; the setting of the most networks first, then that of the most epochs."""
        groups: dict[str, dict[tuple[str, float | None], list[LongTraining]]] = {}
        for one in sorted(self.trainings, key=_place):
            groups.setdefault(one.setting, {}).setdefault((one.key, one.lr), []).append(one)
        results = (tuple(map(_result, group.values())) for group in groups.values())
        return tuple(sorted(results, key=lambda group: (-len(_keys(group)), -group[0].epochs)))

    @property
    def best(self) -> LongResult | None:
        """The trial's result of the highest top-1 on the scoring images; None where none is."""
        results = (one for group in self.settings for one in group if one.trial is not None)
        return max(results, key=lambda one: one.top1, default=None)

    def of(self, number: int) -> LongResult | None:
        """A trial's, of the first setting that it was trained by; None if it was not."""
        results = (one for group in self.settings for one in trials_of(group))
        return next((one for one in results if one.trial == number), None)


def trials_of(group: Iterable[LongResult]) -> tuple[LongResult, ...]:
    """The trials of a setting in their order, each at the learning rate at which it has the highest
    top-1 on the scoring images."""
    best: dict[str, LongResult] = {}
    for one in group:
        if one.trial is not None and (one.key not in best or one.top1 > best[one.key].top1):
            best[one.key] = one
    return tuple(best.values())


def _keys(group: Iterable[LongResult]) -> set[str]:
    return {one.key for one in group}


def called(trial: int | None, baseline: str) -> str:
    """The name of a run's network in texts: `trial 7` or `baseline vgg-17`."""
    return f"baseline {baseline}" if trial is None else f"trial {trial}"


def _place(one: LongTraining) -> tuple[bool, int, str, float]:
    """Trials by number, then baselines by name, each at the trials' learning rate first; the order
    of the file where these are equal."""
    return one.trial is None, one.trial or 0, one.baseline, one.lr or 0.0


def _result(own: Sequence[LongTraining]) -> LongResult:
    """The result of trainings of one network, learning rate and setting."""
    tests = [one.test_top1 for one in own if one.test_top1 is not None]
    is_tested = len(tests) == len(own)
    return LongResult(
        trial=own[0].trial,
        baseline=own[0].baseline,
        flops=own[0].flops,
        key=own[0].key,
        epochs=own[0].epochs,
        recipe=own[0].recipe,
        weights=own[0].weights,
        lr=own[0].lr,
        setting=own[0].setting,
        seeds=tuple(one.seed for one in own),
        top1=fmean(one.top1 for one in own),
        test_top1=fmean(tests) if is_tested else None,
        seconds=fmean(one.seconds for one in own),
        all_top1=tuple(one.top1 for one in own),
        all_test_top1=tuple(tests) if is_tested else (),
    )


def setting_of(identity: Mapping[str, Any]) -> str:
    """The setting of a training, from what its checkpoint says of it (see `Plan.identity`)."""
    data = {name: value for name, value in identity["data"].items() if name != "root"}
    parts = [data, identity["recipe"], identity["init_from"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def check_can_add(folder: Path) -> None:
    """Make sure that a line can be added to the file of a run, before a training begins.

    Raises:
        RunError: it is no regular file, or it or its folder cannot be written.
    """
    path = folder / FILE_NAME
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RunError(f"{path}: is not a file of a run, but a link, a folder or a device")
    check_writable(folder)
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        raise RunError(f"{path}: cannot be written: {os.strerror(errno.EACCES)}")


def add(folder: Path, training: LongTraining) -> None:
    """Add a training to the file of a run; it is there when this returns.

    Raises:
        RunError: the file cannot be written.
    """
    path = folder / FILE_NAME
    with writing(path):
        append_line(path, training.model_dump_json())


def read_long(folder: Path, keys: Mapping[int, str]) -> LongTrainings:
    """The long trainings of a run; none where there is no file.

    A line that cannot be read, or whose trial is none of the run, does not count.

    Args:
        folder: of the run.
        keys: of its networks, by trial.

    Raises:
        RunError: the file cannot be read at all.
    """
    path = folder / FILE_NAME
    try:
        lines = read_bytes(path, _MOST_BYTES).splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return LongTrainings()
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {reason_of(error)}") from None
    found: dict[tuple[str, float | None, str, int], LongTraining] = {}
    unread = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            one = LongTraining.model_validate_json(line)
        except ValidationError:
            unread.append(f"line {number} (is damaged)")
            continue
        if one.trial is not None and keys.get(one.trial) != one.key:
            unread.append(f"line {number} (trial {one.trial} has another network)")
            continue
        found.pop(same := (one.key, one.lr, one.setting, one.seed), None)
        found[same] = one
    return LongTrainings(tuple(found.values()), tuple(unread))
