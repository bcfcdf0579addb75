"""What another run found: entered once, whole, and also after a kill in the middle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import make_space
from tests.engine.decide.test_warm_start import finished
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.replicates import Replication
from vitnas.engine.decide.warm_start import known_trials
from vitnas.engine.store.study import read_run
from vitnas.run import Run

Make = Callable[..., Controller]


@pytest.fixture
def other(tmp_path: Path) -> Run:
    return finished(tmp_path / "other", num_trials=1, replication=Replication(2, 400))


def trainings(folder: Path) -> list[tuple[str, int]]:
    run = read_run(folder)
    return sorted((trial.key, trial.seed) for trial in (*run.trials, *run.replicates))


def test_a_driver_killed_between_replicates_enters_the_rest_later(
    controller_of: Make, tmp_path: Path, other: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (known,) = known_trials(make_space(), other)
    killed = controller_of(num_trials=0)
    create, made = killed.store._file.create_new_trial, list[int]()

    def create_two(*arguments: Any) -> int:
        if len(made) == 2:
            raise SystemExit
        made.append(create(*arguments))
        return made[-1]

    monkeypatch.setattr(killed.store._file, "create_new_trial", create_two)
    with pytest.raises(SystemExit):
        killed.take(*known)
    killed.store.close()
    assert len(trainings(tmp_path)) == 2
    controller = controller_of(num_trials=0)
    assert controller.take(*known) == 0
    controller.store.close()
    assert trainings(tmp_path) == trainings(other.path)


def test_a_replicate_that_the_other_run_made_since_comes_along(
    controller_of: Make, tmp_path: Path, other: Run
) -> None:
    before = replace(other, replicates=other.replicates[:1])
    for run in (before, other):
        controller = controller_of(num_trials=0)
        (known,) = known_trials(make_space(), run)
        assert controller.take(*known) == 0
        controller.store.close()
    assert trainings(tmp_path) == trainings(other.path)
    assert [trial.replicate_of for trial in read_run(tmp_path).replicates] == [0, 0]


def test_what_this_run_trained_itself_stays_its_own(controller_of: Make, other: Run) -> None:
    controller = controller_of(num_trials=0)
    (known,) = known_trials(make_space(), other)
    candidate, trial, replicates = known
    assert controller.take(candidate, trial, ()) == 0
    assert controller.take(candidate, replace(trial, seed=trial.seed + 1), replicates) is None
    assert len(controller.trials) == 1
