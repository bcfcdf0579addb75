"""Replicates: who is trained again, with which seeds, and that nothing is lost or made twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.conftest import make_space
from tests.engine.decide.conftest import IMAGES, Make, facts, finish_all, made, of_images, train
from tests.report.runs import run_of
from tests.test_run import rising
from vitnas.engine.decide.controller import MAX_RETRIES, Controller
from vitnas.engine.decide.job import Decision, Job
from vitnas.engine.decide.replicates import Replication
from vitnas.engine.decide.rules import Rules
from vitnas.engine.pruning.pareto import FrontRank, ParetoPruner
from vitnas.engine.store.study import RunStore, read_run
from vitnas.noise import PLAUSIBLE
from vitnas.records import Outcome
from vitnas.run import Run
from vitnas.seeds import derive_seed


@pytest.mark.slow
def test_what_may_be_on_the_front_is_trained_again(replicating: Make, tmp_path: Path) -> None:
    controller = replicating(num_trials=12)
    finish_all(controller)
    assert controller.done
    assert controller.num_ended == 12
    run = of_images(read_run(tmp_path))
    assert len(run.trials) - run.count(Outcome.DUPLICATE) == 12
    assert run.replicates
    assert min(trial.number for trial in run.replicates) > max(t.number for t in run.trials)
    near = {number for number, chance in run.chances.items() if chance >= PLAUSIBLE}
    assert near == {trial.number for trial in (*run.confident, *run.plausible)}
    assert all(made(run)[number] == 2 for number in near)
    assert max(made(run).values()) == 2
    assert {trial.number for trial in run.front} <= set(made(run))


def test_each_replicate_has_its_own_seed_and_the_networks_key(
    replicating: Make, tmp_path: Path
) -> None:
    finish_all(replicating(num_trials=6))
    run = read_run(tmp_path)
    by_number = {trial.number: trial for trial in run.trials}
    seen: Counter[str] = Counter()
    for again in run.replicates:
        original = by_number[again.replicate_of or 0]
        seen[again.key] += 1
        assert again.seed == derive_seed(0, original.key, seen[again.key])
        assert (again.key, again.flops, again.params) == (
            original.key,
            original.flops,
            original.params,
        )
        assert again.config == original.config
        assert again.epochs == 3
    assert len({t.seed for t in (*run.trials, *run.replicates)}) == len(run.trials) + sum(
        seen.values()
    )


def test_top1_is_the_mean_over_trainings(replicating: Make, tmp_path: Path) -> None:
    finish_all(replicating(num_trials=6))
    run = read_run(tmp_path)
    for trial in run.trials:
        others = [t.curve[-1] for t in run.replicates if t.replicate_of == trial.number]
        assert trial.replicates == tuple(others)
        assert trial.trainings == (trial.curve[-1], *others)
        assert trial.top1 == pytest.approx(sum(trial.trainings) / len(trial.trainings))


def test_of_all_networks_each_has_as_many(tmp_path: Path) -> None:
    """Also of those that are far from the front, and never of one that did not reach its end."""
    space = make_space()
    store = RunStore(tmp_path, {"space": space.to_tree(), "seed": 0})
    rules = Rules(6, sampler="random", replication=Replication(2, IMAGES, of_all=True))
    controller = Controller(store, space, rules)
    job = controller.next()
    assert job is not None
    controller.fail(job.number, Outcome.DIVERGED, "loss is nan")
    finish_all(controller)
    run = read_run(tmp_path)
    assert made(run) == {trial.number: 2 for trial in run.complete}
    assert job.number not in made(run)
    first = [trial.replicate_of for trial in run.replicates][: len(run.complete)]
    assert first == sorted(trial.number for trial in run.complete), "one of each, then the second"


def run_in_parts(folder: Path, *parts: int) -> Run:
    """A run whose driver is killed after so many trainings, and resumed."""
    space = make_space()
    for part in parts:
        store = RunStore(folder, {"space": space.to_tree(), "seed": 0})
        rules = Rules(5, sampler="random", replication=Replication(2, IMAGES))
        controller = Controller(store, space, rules)
        finish_all(controller, part)
        if (job := controller.next()) is not None:  # under way when the driver is killed
            controller.report(job.number, 1, 50.0)
        store.close()
    return read_run(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_in_parts(tmp_path_factory.mktemp("whole"), 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("killed_after", [1, 5, 7, 8, 11])
def test_killed_and_resumed_is_the_run_that_was_not(
    whole: Run, tmp_path: Path, killed_after: int
) -> None:
    cut = run_in_parts(tmp_path, killed_after, 10_000)
    if killed_after > 5:  # the random sampler of another session draws other networks
        assert facts(cut) == facts(whole)
    assert not any(t.outcome is Outcome.RUNNING for t in (*cut.trials, *cut.replicates))
    assert cut.count(Outcome.COMPLETE) == 5
    seeds = [trial.seed for trial in (*cut.complete, *cut.replicates)]
    assert len(seeds) == len(set(seeds)), "nothing was trained twice"


@pytest.mark.slow
def test_more_replicates_of_a_finished_run_add_what_is_missing(
    replicating: Make, tmp_path: Path
) -> None:
    finish_all(replicating(0, num_trials=6))
    assert not read_run(tmp_path).replicates
    finish_all(replicating(1, num_trials=6))
    once = read_run(tmp_path)
    assert set(made(once).values()) == {1}
    finish_all(replicating(3, num_trials=6))
    thrice = read_run(tmp_path)
    assert facts(thrice)[: len(facts(once))] == facts(once)
    assert max(made(thrice).values()) == 3
    assert len(thrice.trials) == len(once.trials)
    assert finish_all(replicating(3, num_trials=6)) == 0


@pytest.mark.slow
def test_more_trials_after_replicates(replicating: Make, tmp_path: Path) -> None:
    finish_all(replicating(1, num_trials=6))
    finish_all(replicating(1, num_trials=9, sampler="ehvi"))
    run = read_run(tmp_path)
    assert len(run.complete) == 9
    assert len({trial.key for trial in run.complete}) == 9


def test_two_workers_make_as_many(replicating: Make, tmp_path: Path) -> None:
    controller = replicating(num_trials=7)
    running: list[Job] = []
    while not controller.done:
        while len(running) < 3 and (job := controller.next()) is not None:
            running.append(job)
        is_trial = [controller.trials[job.number].replicate_of is None for job in running]
        assert len(set(is_trial)) == 1, "replicates wait for the last trial"
        train(controller, running.pop())
    assert not running
    run = of_images(read_run(tmp_path))
    near = {number for number, chance in run.chances.items() if chance >= PLAUSIBLE}
    assert all(made(run)[number] == 2 for number in near)


def test_a_replicate_is_never_stopped_early(replicating: Make, tmp_path: Path) -> None:
    stern = ParetoPruner((FrontRank((1, 2), min_peers=1),))
    controller = replicating(num_trials=10, pruner=stern)
    while (job := controller.next()) is not None:
        if controller.trials[job.number].replicate_of is None:
            train(controller, job)
            continue
        for epoch in (1, 2, 3):
            assert controller.report(job.number, epoch, 1.0) is Decision.CONTINUE
        controller.finish(job.number, seconds=1.0, device="cpu")
    assert read_run(tmp_path).replicates


def test_a_lost_replicate_is_trained_again_a_few_times(replicating: Make, tmp_path: Path) -> None:
    controller = replicating(1, num_trials=1)
    finish_all(controller, 1)
    job = controller.next()
    assert job is not None
    for _ in range(MAX_RETRIES):
        controller.interrupt(job.number, "node died")
        assert not controller.done
        assert controller.next() == job
    controller.interrupt(job.number, "node died")
    assert controller.next() is None
    assert controller.done
    run = read_run(tmp_path)
    assert [trial.outcome for trial in run.replicates] == [Outcome.FAILED]
    assert [trial.outcome for trial in run.trials] == [Outcome.COMPLETE]
    assert run.trials[0].replicates == ()


def test_a_replicate_out_of_memory_is_tried_alone(replicating: Make, tmp_path: Path) -> None:
    controller = replicating(1, num_trials=3)
    finish_all(controller, 3)
    first, other = controller.next(), controller.next()
    assert first is not None
    assert other is not None
    controller.fail(first.number, Outcome.OOM, "no memory")
    assert (controller.next() or other).number != first.number, "others are still in training"
    controller.store.close()
    controller = replicating(1, num_trials=3)  # the driver was killed
    jobs = []
    while (job := controller.next()) is not None:
        jobs.append(job)
        train(controller, job)
    (again,) = [job for job in jobs if job.number == first.number]
    assert again.alone
    assert not any(trial.outcome is Outcome.RUNNING for trial in read_run(tmp_path).replicates)


def test_the_seed_that_diverges_is_not_made_up_for(replicating: Make, tmp_path: Path) -> None:
    controller = replicating(2, num_trials=1)
    finish_all(controller, 1)
    job = controller.next()
    assert job is not None
    controller.fail(job.number, Outcome.DIVERGED, "loss is nan")
    finish_all(controller)
    run = read_run(tmp_path)
    assert [t.outcome for t in run.replicates] == [Outcome.DIVERGED, Outcome.COMPLETE]
    assert len(run.trials[0].trainings) == 2


def test_ctrl_c_while_replicates_are_left_is_an_interruption(replicating: Make) -> None:
    controller = replicating(num_trials=2)
    finish_all(controller, 2)
    controller.drain()
    assert controller.next() is None
    assert controller.done
    assert controller.is_interrupted
    assert controller.cut_short_by == "interrupted"


def test_networks_behind_a_lucky_score_are_trained_again() -> None:
    run = of_images(run_of(Path("lucky"), *rising(30, lucky=6)))
    trials, replication = list(run.trials), Replication(1, IMAGES)
    while (number := replication.next(trials)) is not None:
        again = replace(trials[number], number=len(trials), replicate_of=number)
        trials.append(replace(again, outcome=Outcome.RUNNING, curve=()))
    chosen = {t.replicate_of for t in trials[30:]}
    assert chosen == {number for number, chance in run.chances.items() if chance >= PLAUSIBLE}
    assert chosen > set(range(7, 25)), "by scores the lucky one bars them"
