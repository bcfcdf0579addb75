"""TensorBoard's own reader finds the curves."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.conftest import accuracy, make_space, train
from tests.report.runs import run_of
from tests.test_run import FEW_IMAGES, rising
from tests.training.test_events import scalars
from vitnas.engine.decide.controller import Controller
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.watch.tensorboard import Curves
from vitnas.errors import ConfigError, RunError
from vitnas.records import Outcome, TrialRecord, front_of

Make = Callable[..., Controller]


def test_a_curve_a_trial_and_the_run_s_own(controller_of: Make, tmp_path: Path) -> None:
    jobs = []
    with Curves(tmp_path / "tb") as curves:
        controller = controller_of(num_trials=3, listener=curves.listen)
        while (job := controller.next()) is not None:
            jobs.append(job)
            train(controller, job)
    for job in jobs:
        found = scalars(tmp_path / "tb" / str(job.number))
        assert [epoch for epoch, _ in found["top1"]] == [1, 2, 3]
        expected = [accuracy(job, epoch) for epoch in (1, 2, 3)]
        assert [top1 for _, top1 in found["top1"]] == pytest.approx(expected, abs=1e-3)
        assert found["flops"] == [(3, controller.trials[job.number].flops)]
    found = scalars(tmp_path / "tb" / "run")
    assert [step for step, _ in found["front_size"]] == [1, 2, 3]
    best = [value for _, value in found["best_top1"]]
    assert best == sorted(best)


def test_the_front_of_the_curves_goes_by_expected_top1(tmp_path: Path) -> None:
    run = run_of(tmp_path, *rising(20, lucky=4), environment=FEW_IMAGES)
    with Curves(tmp_path / "tb", ["flops"], num_images=400) as curves:
        for one in run.trials:
            curves.listen("end", one)
    assert scalars(tmp_path / "tb" / "run")["front_size"][-1] == (20, len(run.front))
    assert len(run.front) != len(front_of(run.trials, ["flops"]))


def test_a_training_that_is_repeated_starts_its_curve_again(
    controller_of: Make, tmp_path: Path
) -> None:
    with Curves(tmp_path / "tb") as curves:
        controller = controller_of(num_trials=2, listener=curves.listen)
        job = controller.next()
        assert job is not None
        controller.report(job.number, 1, 11.0)
        controller.interrupt(job.number, "node died")
        assert controller.next() == job
        train(controller, job)
    with Curves(tmp_path / "tb") as curves:
        controller.store.close()
        resumed = controller_of(num_trials=2, listener=curves.listen)
        other = resumed.next()
        assert other is not None
        resumed.fail(other.number, Outcome.DIVERGED, "nan", seconds=0.1, device="cpu")
    found = scalars(tmp_path / "tb" / str(job.number))
    assert [step for step, _ in found["top1"]] == [1, 2, 3]
    assert 11.0 not in [value for _, value in found["top1"]]
    found = scalars(tmp_path / "tb" / "run")
    assert found["front_size"] == [(1, 1.0), (2, 1.0)]


def test_only_its_own_files_are_deleted_and_no_link_is_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in ("events.out.tfevents.1", "thesis.txt"):
        (theirs / name).write_text("mine")
    shutil.copytree(theirs, tmp_path / "tb" / "0")
    (tmp_path / "tb" / "1").symlink_to(theirs)
    with Curves(tmp_path / "tb") as curves:
        for number in (0, 1):
            curves.listen("start", TrialRecord(number, outcome=Outcome.RUNNING))
        with pytest.raises(RunError, match="1: is a link"):
            curves.listen("epoch", TrialRecord(1, outcome=Outcome.RUNNING, curve=(50.0,)))
    assert [file.name for file in (tmp_path / "tb" / "0").iterdir()] == ["thesis.txt"]
    assert len(list(theirs.iterdir())) == 2


@pytest.mark.slow
def test_a_real_search_logs_on_demand(tmp_path: Path) -> None:
    options = SearchOptions(
        trials=1, gpus_per_trial=0.0, backend="serial", tensorboard=True, baselines=False
    )
    run = run_search(make_space(), tmp_path / "run", options)
    (trial,) = run.complete
    found = scalars(run.path / "tensorboard" / str(trial.number))
    assert [value for _, value in found["top1"]] == pytest.approx(list(trial.curve), abs=1e-3)


def test_without_the_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer", None)
    with pytest.raises(ConfigError, match=r"--tensorboard: .*pip install 'vitnas\[tensorboard\]'"):
        Curves(tmp_path / "tb")
    options = SearchOptions(
        trials=1, gpus_per_trial=0.0, backend="serial", tensorboard=True, baselines=False
    )
    with pytest.raises(ConfigError, match="--tensorboard"):
        run_search(make_space(), tmp_path / "run", options)
    assert not (tmp_path / "run").exists()
