"""Messages of workers: what they do to a trial, and which weights are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import make_space
from tests.engine.decide.conftest import Make, begin
from vitnas.engine.decide.job import Decision, EpochDone, Failure, Job, Measured
from vitnas.engine.decide.steering import Steering
from vitnas.engine.store.study import read_run
from vitnas.engine.store.weights import KeptWeights
from vitnas.records import Outcome


def test_a_training_that_is_late_is_ended(controller_of: Make, tmp_path: Path) -> None:
    controller = controller_of(num_trials=2)
    steering = Steering(controller, KeptWeights(tmp_path), trial_seconds=60.0)
    late = begin(controller)
    assert steering.take(late.number, EpochDone(1, 50.0, 30.0)) is Decision.CONTINUE
    assert steering.take(late.number, EpochDone(2, 60.0, 61.0)) is Decision.STOP
    just = begin(controller)
    for epoch, seconds in ((1, 20.0), (2, 40.0), (3, 61.0)):
        steering.take(just.number, EpochDone(epoch, 50.0, seconds))
    trial = controller.trials[late.number]
    assert (trial.outcome, trial.curve) == (Outcome.TIMEOUT, (50.0, 60.0))
    assert trial.error == "not done after 61 s; a training may take 60 s"
    assert controller.trials[just.number].outcome is Outcome.COMPLETE


@pytest.mark.parametrize(("seconds", "outcome"), [(59.0, "running"), (72.0, "timeout")])
def test_a_worker_that_was_late_is_not_taken_for_lost(
    controller_of: Make, tmp_path: Path, seconds: float, outcome: str
) -> None:
    controller = controller_of(num_trials=1)
    clock = [0.0]
    controller._meter._clock = lambda: clock[0]
    steering = Steering(controller, KeptWeights(tmp_path), trial_seconds=60.0)
    job = begin(controller)
    clock[0] = seconds
    steering.lose(job.number, "exit code 1")
    assert controller.trials[job.number].outcome.value == outcome
    assert (begin(controller) == job) if outcome == "running" else controller.done


def weights_kept(run: Path) -> list[str]:
    folder = run / "weights"
    return sorted(path.stem for path in folder.iterdir()) if folder.is_dir() else []


def trained(steering: Steering, top1: float, job: Job | None = None) -> int:
    """Number of a trial whose last epoch brings weights."""
    job = job or begin(steering.controller)
    for epoch in range(1, steering.controller.epochs + 1):
        last = epoch == steering.controller.epochs
        done = EpochDone(epoch, top1, float(epoch), "cpu", b"weights" if last else None)
        steering.take(job.number, done)
    return job.number


def test_weights_of_the_front_are_kept_and_no_others(controller_of: Make, tmp_path: Path) -> None:
    """A network at half the accuracy of all is on the front only where it is the cheapest."""
    controller = controller_of(num_trials=6)
    steering = Steering(controller, KeptWeights(tmp_path))
    for top1 in (40.0, 80.0, 81.0, 82.0, 83.0, 84.0):
        trained(steering, top1)
    front = {str(trial.number) for trial in read_run(tmp_path).front}
    assert 0 < len(front) < 6
    assert set(weights_kept(tmp_path)) == front


def test_weights_of_replicates_are_kept_as_long_as_their_networks(
    replicating: Make, tmp_path: Path
) -> None:
    controller = replicating(1, num_trials=2)
    steering = Steering(controller, KeptWeights(tmp_path))
    for top1 in (80.0, 81.0, 82.0, 83.0):
        trained(steering, top1)
    run = read_run(tmp_path)
    front = {str(number) for trial in run.front for number in run.trainings_of(trial)}
    assert len(run.replicates) == 2
    assert set(weights_kept(tmp_path)) == front


def test_of_other_weights_those_of_a_later_session_are_the_newest(
    controller_of: Make, tmp_path: Path
) -> None:
    """There is room for three files, and the front has fewer members."""
    kept = KeptWeights(tmp_path, room=3 * len(b"weights"))
    first = controller_of(num_trials=4)
    for top1 in (90.0, 30.0, 30.0, 30.0):
        trained(Steering(first, kept), top1)
    first.store.close()
    again = controller_of(num_trials=8)
    numbers = [trained(Steering(again, kept), 20.0) for _ in range(4)]
    front = [trial.number for trial in read_run(tmp_path).front]
    newest = [number for number in numbers if number not in front][-(3 - len(front)) :]
    assert set(weights_kept(tmp_path)) == {str(number) for number in (*front, *newest)}


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.DIVERGED])
def test_a_failure_ends_the_trial(controller_of: Make, tmp_path: Path, outcome: Outcome) -> None:
    controller = controller_of(num_trials=1)
    steering = Steering(controller, KeptWeights(tmp_path))
    job = begin(controller)
    assert steering.take(job.number, EpochDone(1, 50.0, 1.0)) is Decision.CONTINUE
    failure = Failure(outcome, "ValueError: no", 2.00049, "cpu")
    assert steering.take(job.number, failure) is Decision.STOP
    trial = controller.trials[job.number]
    assert (trial.outcome, trial.error, trial.seconds) == (outcome, "ValueError: no", 2.0)
    assert controller.done
    assert not weights_kept(tmp_path)


def test_what_was_measured_reaches_the_limits(controller_of: Make, tmp_path: Path) -> None:
    space = make_space(
        objectives={"top1": "maximize", "latency_ms": "minimize"},
        limits={"latency_ms": {"max": 5.0}},
    )
    controller = controller_of(space, num_trials=2)
    steering = Steering(controller, KeptWeights(tmp_path))
    slow, fast = begin(controller), begin(controller)
    assert steering.take(slow.number, Measured({"latency_ms": 6.0}, "cpu")) is Decision.STOP
    assert steering.take(fast.number, Measured({"latency_ms": 4.0}, "cpu")) is Decision.CONTINUE
    assert controller.trials[slow.number].outcome is Outcome.REFUSED
    assert controller.trials[fast.number].measured == {"latency_ms": 4.0}
