"""What Ray sees of our parts, and what becomes of workers that go wrong."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle

from tests.engine.conftest import accuracy, make_space
from vitnas.engine.backends.cluster import _hush
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.tune import (
    _Clock,
    _ControllerScheduler,
    _EpochTrainable,
    _JobSearcher,
    run_tune,
)
from vitnas.engine.backends.worker import Worker
from vitnas.engine.decide.budget import Budget
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import EpochDone, Failure, Job, Measured, Message
from vitnas.engine.decide.steering import Steering
from vitnas.engine.store.study import read_run
from vitnas.engine.store.weights import KeptWeights
from vitnas.records import Outcome, TrialRecord
from vitnas.run import Run

Make = Callable[..., Controller]


class Unpicklable:
    """Stands for a study, or for a display on a terminal."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


def test_nothing_of_the_driver_is_pickled() -> None:
    """Tune pickles searcher, scheduler and callbacks at the start, and a live display cannot be."""
    steering = Steering(Unpicklable(), Unpicklable())  # type: ignore[arg-type]
    for part in (_JobSearcher(steering, 2), _ControllerScheduler(steering), _Clock(steering)):
        cloudpickle.dumps(part)


def test_a_lost_worker_is_not_told_with_tune_s_traceback() -> None:
    """It says "Trial task failed" as an error; the trial is simply trained again."""
    _hush()
    assert not logging.getLogger("ray.tune.execution.tune_controller").isEnabledFor(logging.ERROR)


def test_waiting_to_measure_is_no_part_of_a_training_s_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver does not count it, either; a worker may wait long for others that measure."""
    now, allowed = [0.0], list[float]()
    monkeypatch.setattr("vitnas.engine.backends.tune.time.monotonic", lambda: now[0])
    dump = "vitnas.engine.backends.tune.faulthandler.dump_traceback_later"
    monkeypatch.setattr(dump, lambda seconds, exit: allowed.append(seconds))

    def messages() -> Iterator[Message]:
        now[0] += 50.0
        yield Measured({"latency_ms": 1.0}, "cpu")
        now[0] += 40.0
        yield EpochDone(1, 50.0, 40.0)
        yield EpochDone(2, 60.0, 40.0)

    trainable = _EpochTrainable.__new__(_EpochTrainable)
    trainable._trial_seconds, trainable._began, trainable._messages = 60.0, 0.0, messages()
    for _ in range(3):
        trainable.step()
    assert allowed == pytest.approx([71.0, 71.0, 31.0])


@dataclass(frozen=True)
class MadeUp(Worker):
    """Trains nothing, and goes wrong as `mischief` says with networks of the greatest depth."""

    mischief: str = ""
    folder: str = ""

    def settle(self) -> MadeUp:
        if self.mischief == "settle":
            raise OSError("no such device")
        return self

    def run(self, job: Job) -> Iterator[Message]:
        if job.config.stages[0].depth == 3:
            getattr(self, f"_{self.mischief or 'behave'}")(job)
            if self.mischief == "memory" or (self.mischief == "share" and not job.alone):
                yield Failure(Outcome.OOM, "OutOfMemoryError: CUDA")
                return
        for epoch in (1, 2, 3):
            weights = bytes(1000) if epoch == 3 else None
            yield EpochDone(epoch, accuracy(job, epoch), 0.1 * epoch, f"{os.getpid()}", weights)

    def _behave(self, job: Job) -> None:
        pass

    _share = _memory = _behave

    def _hang(self, job: Job) -> None:
        time.sleep(600)

    def _die_once(self, job: Job) -> None:
        mark = Path(self.folder) / f"died {job.number}"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def run_with(shared_ray: Any, controller_of: Make, tmp_path: Path) -> Callable[..., Run]:
    """A whole run of eight trials by workers that go wrong."""

    def run(
        mischief: str, gpus: float = 0.0, trial_seconds: float | None = None, **more: Any
    ) -> Run:
        controller = controller_of(num_trials=8, budget=Budget(gpus=gpus), **more)
        proxy = make_space().config.proxy
        worker = MadeUp(proxy, {}, "cpu", mischief=mischief, folder=str(tmp_path))
        steering = Steering(controller, KeptWeights(tmp_path), trial_seconds)
        resources = Resources(2, gpus, 1, 0.5)
        run_tune(steering, shared_ray.put(worker), resources, tmp_path / ".tune")
        controller.store.close()
        assert not (tmp_path / ".tune").exists()
        found = read_run(tmp_path)
        assert sum(trial.is_ended_here for trial in found.trials) == 8
        assert not found.count(Outcome.RUNNING)
        return found

    return run


def deep(run: Run) -> list[TrialRecord]:
    return [t for t in run.trials if t.key and t.config["stages"][0].get("depth") == 3]


@pytest.mark.slow
def test_weights_arrive_and_nothing_is_kept_of_them(run_with: Callable[..., Run]) -> None:
    run = run_with("")
    assert len(run.complete) == 8
    kept = {int(path.stem) for path in (run.path / "weights").iterdir()}
    assert kept == {trial.number for trial in run.front}
    assert len({trial.device for trial in run.complete}) <= 2, "workers are reused"


@pytest.mark.slow
def test_out_of_memory_on_a_share_gets_the_whole_gpu(run_with: Callable[..., Run]) -> None:
    run = run_with("share", gpus=0.25)
    assert deep(run)
    assert len(run.complete) == 8
    shared = {trial.device for trial in run.complete if trial not in deep(run)}
    assert not shared & {trial.device for trial in deep(run)}, "in processes of their own"
    assert all(trial.gpu_seconds > 0 for trial in run.complete)


@pytest.mark.slow
def test_out_of_memory_on_a_whole_gpu_is_an_outcome(run_with: Callable[..., Run]) -> None:
    run = run_with("memory", gpus=0.25)
    assert deep(run)
    assert {trial.outcome for trial in deep(run)} == {Outcome.OOM}
    assert len(run.complete) == 8 - len(deep(run))


@pytest.mark.slow
def test_a_worker_that_hangs_is_ended(run_with: Callable[..., Run]) -> None:
    run = run_with("hang", trial_seconds=1.0)
    assert deep(run)
    assert {trial.outcome for trial in deep(run)} == {Outcome.TIMEOUT}
    assert len(run.complete) == 8 - len(deep(run))
    assert all("a training may take 1 s" in str(trial.error) for trial in deep(run))


@pytest.mark.slow
def test_a_worker_that_dies_is_made_good(run_with: Callable[..., Run], tmp_path: Path) -> None:
    run = run_with("die_once")
    assert len(run.complete) == 8
    died = {int(path.name.split()[1]) for path in tmp_path.glob("died *")}
    assert died == {trial.number for trial in deep(run)}


@pytest.mark.slow
def test_a_worker_that_cannot_start_fails_at_once(run_with: Callable[..., Run]) -> None:
    """It is not taken for a lost one, which would be tried four times each."""
    run = run_with("settle")
    assert [t.outcome for t in run.trials if t.key] == [Outcome.FAILED] * 8
    assert {t.error for t in run.trials if t.key} == {"OSError: no such device"}


@pytest.mark.slow
def test_what_the_driver_raises_is_raised(run_with: Callable[..., Run]) -> None:
    """Tune would make a TuneError with a traceback as its text of it."""

    def complain(event: str, trial: TrialRecord) -> None:
        if event == "epoch":
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError) as error:
        run_with("", listener=complain)
    assert str(error.value) == "the disk is full"
