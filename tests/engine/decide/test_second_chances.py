"""Trainings that did not end: out of memory, too late, lost; and searches that end early."""

from __future__ import annotations

from pathlib import Path

from tests.engine.conftest import train
from tests.engine.decide.conftest import Make, begin
from vitnas.engine.decide.budget import Budget
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import Job
from vitnas.engine.store.study import read_run
from vitnas.records import Outcome


def out_of_memory(controller: Controller, job: Job) -> None:
    controller.fail(job.number, Outcome.OOM, "OutOfMemoryError: CUDA", seconds=0.1, device="x")


def test_out_of_memory_is_tried_again_alone_when_all_else_is_done(
    controller_of: Make, tmp_path: Path
) -> None:
    controller = controller_of(num_trials=3)
    greedy, other = begin(controller), begin(controller)
    controller.report(greedy.number, 1, 50.0)
    out_of_memory(controller, greedy)
    assert controller.trials[greedy.number].outcome is Outcome.RUNNING
    third = begin(controller)
    assert third.number != greedy.number
    train(controller, other)
    assert controller.next() is None, "it would not be alone"
    assert not controller.done
    train(controller, third)
    again = begin(controller)
    assert (again.number, again.seed, again.alone) == (greedy.number, greedy.seed, True)
    train(controller, again)
    assert controller.done
    run = read_run(tmp_path)
    assert len(run.complete) == 3
    assert run.trials[greedy.number].epochs == 3


def test_out_of_memory_alone_is_the_architecture_s(controller_of: Make, tmp_path: Path) -> None:
    controller = controller_of(num_trials=1)
    for _ in range(2):
        out_of_memory(controller, begin(controller))
    assert controller.done
    (trial,) = [trial for trial in read_run(tmp_path).trials if trial.key]
    assert (trial.outcome, trial.error) == (Outcome.OOM, "OutOfMemoryError: CUDA")


def test_several_may_be_alone_at_a_time_on_a_device_each(controller_of: Make) -> None:
    controller = controller_of(num_trials=2, budget=Budget(gpus=0.5))
    first, second = begin(controller), begin(controller)
    out_of_memory(controller, first)
    out_of_memory(controller, second)
    assert {begin(controller).number, begin(controller).number} == {first.number, second.number}


def test_on_the_cpu_one_is_alone_at_a_time(controller_of: Make) -> None:
    """All workers share the machine's memory, and nothing but the controller keeps them apart."""
    controller = controller_of(num_trials=2)
    for job in (begin(controller), begin(controller)):
        out_of_memory(controller, job)
    alone = begin(controller)
    assert controller.next() is None
    assert not controller.done
    train(controller, alone)
    train(controller, begin(controller))
    assert controller.done


def test_a_resumed_run_knows_what_has_to_be_alone(controller_of: Make) -> None:
    first = controller_of(num_trials=2)
    greedy = begin(first)
    out_of_memory(first, greedy)
    first.store.close()
    second = controller_of(num_trials=2)
    other = begin(second)
    assert other.number != greedy.number
    assert not other.alone
    train(second, other)
    again = begin(second)
    assert (again.number, again.alone) == (greedy.number, True)
    second.interrupt(again.number, "node died")
    assert begin(second).alone


def test_a_small_space_tries_again_before_it_ends(controller_of: Make) -> None:
    from tests.engine.conftest import make_space

    model = dict(make_space().config.model)
    model["stages"] = [{"token_mixer": "mhsa", "embed_dim": {"choice": [32, 64]}}]
    model["groups"] = "[1]"
    controller = controller_of(make_space(model=model), num_trials=9)
    greedy = begin(controller)
    out_of_memory(controller, greedy)
    train(controller, begin(controller))
    train(controller, begin(controller))
    assert controller.next() is None
    assert controller.done
    assert controller.num_ended == 2
    assert controller.cut_short_by == "the space has nothing new to show"


def test_draining_starts_nothing_and_forgets_nothing(controller_of: Make) -> None:
    controller = controller_of(num_trials=5)
    running, lost = begin(controller), begin(controller)
    controller.drain()
    assert controller.next() is None
    assert not controller.done
    train(controller, running)
    controller.interrupt(lost.number, "node died")
    assert controller.next() is None
    assert controller.done
    assert controller.is_interrupted
    controller.store.close()
    resumed = controller_of(num_trials=5)
    assert begin(resumed) == lost


def test_draining_at_the_very_end_interrupts_nothing(controller_of: Make) -> None:
    controller = controller_of(num_trials=1)
    job = begin(controller)
    controller.drain()
    train(controller, job)
    assert controller.done
    assert not controller.is_interrupted
    assert controller.cut_short_by is None


def test_time_that_is_up_lets_what_runs_end(controller_of: Make) -> None:
    controller = controller_of(num_trials=5, budget=Budget(seconds=1e6))
    job = begin(controller)
    controller._meter.budget = Budget(seconds=0.0)
    assert controller.next() is None
    assert not controller.done
    train(controller, job)
    assert controller.done
    assert controller.cut_short_by == "the time is up"
    assert not controller.is_interrupted
    assert controller.num_ended == 1


def test_gpu_time_of_earlier_sessions_counts(controller_of: Make, tmp_path: Path) -> None:
    budget = Budget(gpu_seconds=3600.0, gpus=0.5)
    first = controller_of(num_trials=5, budget=budget)
    clock = [0.0]
    first._meter._clock = lambda: clock[0]
    job = begin(first)
    clock[0] = 7200.0
    train(first, job)
    assert first.next() is None
    assert first.cut_short_by == "the GPU hours are spent"
    first.store.close()
    assert read_run(tmp_path).complete[0].gpu_seconds == 3600.0
    second = controller_of(num_trials=5, budget=budget)
    assert second.next() is None
    assert second.done


def test_a_lost_training_shows_no_epochs_of_its_first_attempt(
    controller_of: Make, tmp_path: Path
) -> None:
    controller = controller_of(num_trials=1)
    job = begin(controller)
    controller.report(job.number, 1, 50.0)
    assert read_run(tmp_path).trials[job.number].curve == (50.0,)
    controller.interrupt(job.number, "node died")
    assert begin(controller) == job
    assert read_run(tmp_path).trials[job.number].curve == ()
