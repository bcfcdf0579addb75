"""What the controller promises: N trainings, nothing twice, nothing lost, limits for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import make_space, start, train, train_some
from tests.engine.decide.conftest import Make, finish_all
from vitnas.engine.decide.controller import MAX_RETRIES, Controller
from vitnas.engine.decide.rules import Rules
from vitnas.engine.pruning.pareto import FrontRank, ParetoPruner
from vitnas.engine.store.study import read_run
from vitnas.errors import RunError
from vitnas.records import Outcome, TrialRecord


def test_n_trials_are_n_trainings_of_n_networks(controller_of: Make, tmp_path: Path) -> None:
    controller = controller_of(num_trials=20)
    finish_all(controller)
    run = read_run(tmp_path)
    assert controller.done
    assert len(run.complete) == 20
    assert len({trial.key for trial in run.complete}) == 20
    assert run.count(Outcome.RUNNING) == 0
    assert all(trial.epochs == 3 and trial.flops > 0 for trial in run.complete)


def test_a_worker_lost_after_the_space_is_exhausted_is_made_good(controller_of: Make) -> None:
    model = dict(make_space().config.model)
    model["stages"] = [{"token_mixer": "mhsa", "embed_dim": {"choice": [32, 64]}}]
    model["groups"] = "[1]"
    controller = controller_of(make_space(model=model), num_trials=9)
    lost, other = controller.next(), controller.next()
    assert lost is not None
    assert other is not None
    assert controller.next() is None
    train(controller, other)
    controller.interrupt(lost.number, "node died")
    assert not controller.done
    finish_all(controller)
    assert controller.num_ended == 2


def test_a_run_goes_on_where_it_stopped(controller_of: Make, tmp_path: Path) -> None:
    first = controller_of(num_trials=10)
    train_some(first, 4)
    interrupted = start(first)
    first.report(interrupted.number, 1, 50.0)
    first.store.close()

    second = controller_of(num_trials=10)
    assert second.num_ended == 4
    again = second.next()
    assert again == interrupted
    assert second.trials[again.number].curve == ()
    train(second, again)
    finish_all(second)
    run = read_run(tmp_path)
    assert len(run.complete) == 10
    assert len({trial.key for trial in run.complete}) == 10
    assert run.count(Outcome.RUNNING) == 0


def test_a_finished_run_may_be_asked_for_more(controller_of: Make) -> None:
    finish_all(controller_of(num_trials=5))
    more = controller_of(num_trials=8)
    finish_all(more)
    assert more.num_ended == 8


def test_a_resumed_random_search_does_not_propose_the_same_again(controller_of: Make) -> None:
    first = controller_of(num_trials=3)
    finish_all(first)
    second = controller_of(num_trials=6)
    finish_all(second)
    keys = [trial.key for trial in second.trials if trial.outcome is Outcome.COMPLETE]
    assert len(set(keys)) == 6


def test_a_driver_killed_while_drawing_leaves_nothing_running(
    controller_of: Make, tmp_path: Path
) -> None:
    controller_of().store.ask()
    finish_all(controller_of(num_trials=2))
    run = read_run(tmp_path)
    assert run.count(Outcome.RUNNING) == 0
    assert len(run.complete) == 2


def test_a_driver_killed_while_ending_a_trial_has_not_lost_it(
    controller_of: Make, tmp_path: Path
) -> None:
    """The result is stored, Optuna has not been told: the trial is complete, not trained again."""
    first = controller_of(num_trials=2)
    job = start(first)
    for epoch in (1, 2, 3):
        first.report(job.number, epoch, 50.0 + epoch)
    result = {"outcome": "complete", "values": [53.0, 1000.0], "seconds": 1.0, "device": "cpu"}
    first.store.describe(job.number, "result", result)
    second = controller_of(num_trials=2)
    assert second.num_ended == 1
    finish_all(second)
    run = read_run(tmp_path)
    assert len(run.complete) == 2
    assert run.trials[job.number].curve == (51.0, 52.0, 53.0)


def test_a_driver_killed_before_answering_a_duplicate_trains_nothing_twice(
    controller_of: Make, tmp_path: Path
) -> None:
    first = controller_of(num_trials=1)
    finish_all(first)
    (done,) = [trial for trial in first.trials if trial.outcome is Outcome.COMPLETE]
    network = {"config": done.config, "key": done.key, "flops": done.flops}
    again = first.store.ask().number
    first.store.describe(again, "network", network | {"num_params": done.num_params, "seed": 1})
    first.store.begin(again)
    second = controller_of(num_trials=3)
    assert second.trials[again].outcome is Outcome.DUPLICATE
    finish_all(second)
    run = read_run(tmp_path)
    assert len({trial.key for trial in run.complete}) == len(run.complete) == 3


def test_errors_are_outcomes_and_count(controller_of: Make, tmp_path: Path) -> None:
    controller = controller_of(num_trials=3)
    for outcome in (Outcome.FAILED, Outcome.DIVERGED, Outcome.TIMEOUT):
        job = controller.next()
        assert job is not None
        controller.fail(job.number, outcome, "RuntimeError: no", seconds=0.5, device="cpu")
    assert controller.next() is None
    run = read_run(tmp_path)
    assert [trial.outcome.value for trial in run.trials if trial.key] == [
        "failed",
        "diverged",
        "timeout",
    ]
    assert {trial.error for trial in run.trials} == {"RuntimeError: no"}
    assert run.front == ()


def test_a_lost_worker_is_retried_a_few_times(controller_of: Make) -> None:
    controller = controller_of(num_trials=1)
    job = start(controller)
    for _ in range(MAX_RETRIES):
        controller.interrupt(job.number, "node died")
        assert controller.next() == job
    controller.interrupt(job.number, "node died")
    assert controller.next() is None
    assert controller.trials[job.number].outcome is Outcome.FAILED
    assert "lost 4 times: node died" in str(controller.trials[job.number].error)


@pytest.mark.slow
def test_stopped_trials_keep_their_curve_and_are_no_front_members(
    controller_of: Make, tmp_path: Path
) -> None:
    finish_all(controller_of(num_trials=30, pruner=ParetoPruner((FrontRank((1, 2)),))))
    run = read_run(tmp_path)
    stopped = [trial for trial in run.trials if trial.outcome is Outcome.STOPPED]
    assert stopped
    assert {trial.epochs for trial in stopped} <= {1, 2}
    assert all(trial.top1 is not None for trial in stopped)
    assert len(run.complete) + len(stopped) == 30
    assert not {trial.number for trial in run.front} & {trial.number for trial in stopped}


def test_the_listener_hears_of_everything(controller_of: Make) -> None:
    heard: list[tuple[str, int]] = []

    def listen(event: str, trial: TrialRecord) -> None:
        heard.append((event, trial.number))

    controller = controller_of(num_trials=1, listener=listen)
    finish_all(controller)
    assert [event for event, _ in heard] == ["start", "epoch", "epoch", "epoch", "end"]


def test_another_space_or_seed_is_refused_with_the_difference(
    controller_of: Make, tmp_path: Path
) -> None:
    finish_all(controller_of(num_trials=1))
    other = make_space(proxy={"epochs": 5, "batch_size": 64, "train_fraction": 0.3})
    with pytest.raises(RunError, match=r"run of another space: proxy\.epochs: 3 -> 5; use another"):
        controller_of(other)
    renamed = make_space(description="the same in other words")
    assert controller_of(renamed).num_ended == 1


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["ehvi", "tpe", "nsga2", "random"])
def test_every_sampler_fills_a_run(controller_of: Make, sampler: str) -> None:
    controller = controller_of(num_trials=25, sampler=sampler)
    finish_all(controller)
    assert controller.num_ended == 25


@pytest.mark.slow
def test_the_same_seed_gives_the_same_study(tmp_path: Path) -> None:
    from vitnas.engine.store.study import RunStore

    keys = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        space = make_space()
        store = RunStore(tmp_path / name, {"space": space.to_tree(), "seed": 5})
        controller = Controller(store, space, Rules(num_trials=15, seed=5))
        finish_all(controller)
        keys.append([(trial.key, trial.seed, trial.curve) for trial in controller.trials])
    assert keys[0] == keys[1]
