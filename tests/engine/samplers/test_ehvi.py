"""The sampler that knows costs: its promises, and Optuna's own tests of samplers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import optuna
import pytest

from tests.engine.conftest import accuracy, make_space, train, train_some
from tests.engine.samplers.in_memory import controller_in_memory, keys_of
from vitnas.config.space import SearchSpace, load_space
from vitnas.cost.closed_form import closed_form
from vitnas.engine.decide.job import Decision
from vitnas.engine.samplers import SAMPLERS, make_sampler
from vitnas.engine.samplers.ehvi import EHVISampler
from vitnas.engine.samplers.pool import SpacePool, mixers_of
from vitnas.engine.store.stored import as_record
from vitnas.pareto import hypervolume
from vitnas.records import Outcome, front_of
from vitnas.replay.simulation import MemoryStore

pytest_samplers = pytest.importorskip("optuna.testing.pytest_samplers")


@pytest.mark.slow
class TestByOptunasOwnTests(
    pytest_samplers.BasicSamplerTestCase,  # type: ignore[misc, name-defined]
    pytest_samplers.RelativeSamplerTestCase,  # type: ignore[misc, name-defined]
    pytest_samplers.MultiObjectiveSamplerTestCase,  # type: ignore[misc, name-defined]
):
    """What Optuna asks of every sampler, in spaces that are not the sampler's."""

    @pytest.fixture
    def sampler(self) -> Callable[[], optuna.samplers.BaseSampler]:
        space = make_space()
        return lambda: EHVISampler(SpacePool(space, 0, first=8), seed=0, startup=4)


@pytest.mark.slow
def test_proposals_follow_from_the_seed() -> None:
    first, again = (keys_of(controller_in_memory(make_space())) for _ in range(2))
    assert first == again
    assert keys_of(controller_in_memory(make_space(), seed=1)) != first


@pytest.mark.slow
def test_nothing_is_proposed_twice_or_outside_the_limits() -> None:
    space = make_space(limits={"flops": {"max": 5.0e5}})
    controller = controller_in_memory(space, num_trials=20)
    keys = keys_of(controller)
    outcomes = {trial.outcome for trial in controller.trials}
    assert len(set(keys)) == len(keys) == 20
    assert outcomes == {Outcome.COMPLETE}


@pytest.mark.slow
def test_the_first_proposal_is_the_cheapest_known() -> None:
    controller = controller_in_memory(make_space())
    keys_of(controller)
    costs = [trial.flops for trial in controller.trials]
    assert costs[0] == min(costs)


@pytest.mark.slow
def test_workers_in_flight_are_sent_to_different_places() -> None:
    """Eight proposals at once, none of them ended: different networks of different costs."""
    controller = controller_in_memory(load_space("digits"), num_trials=40)
    train_some(controller, 12)
    jobs = [controller.next() for _ in range(8)]
    costs = {closed_form(job.config).flops for job in jobs if job is not None}
    assert len(costs) >= 5


@pytest.mark.slow
def test_it_finds_the_front_with_fewer_trainings_than_chance() -> None:
    """Made-up accuracies that rise with width: hypervolume after 12 of 54, mean of four seeds."""
    volumes = {}
    for name in ("ehvi", "random"):
        shares = []
        for seed in range(4):
            controller = controller_in_memory(make_space(), num_trials=12, seed=seed, sampler=name)
            keys_of(controller)
            ends = [(np.log(t.flops), -t.curve[-1]) for t in controller.trials if t.curve]
            shares.append(hypervolume(ends, (np.log(3e6), -50.0)))
        volumes[name] = np.mean(shares)
    assert volumes["ehvi"] > volumes["random"]


@pytest.mark.slow
def test_what_was_drawn_long_ago_is_forgotten() -> None:
    """A search of thousands of trials draws some hundred thousand networks."""
    samplers: list[EHVISampler] = []

    def make(name: str, seed: int, space: SearchSpace) -> optuna.samplers.BaseSampler:
        if name == "ehvi":
            samplers.append(EHVISampler(SpacePool(space, seed, first=8, fresh=8, size=8), seed))
        return samplers[0]

    keys_of(controller_in_memory(load_space("digits"), num_trials=60, samplers=make))
    rows = samplers[0]._model._rows
    assert 60 <= len(rows) <= 2 * (60 + 8 + 8) + 8


@pytest.mark.slow
def test_stopped_failed_and_running_trials_are_learned_from() -> None:
    controller = controller_in_memory(make_space(), num_trials=30)
    for index in range(12):
        job = controller.next()
        assert job is not None
        if index == 3:
            controller.fail(job.number, Outcome.DIVERGED, "loss is nan")
        elif index % 3 == 1:
            controller.report(job.number, 1, accuracy(job, 1))
            controller.finish(job.number, seconds=1.0, device="cpu")
        elif index % 3 == 0:
            train(controller, job)
        else:
            controller.report(job.number, 1, accuracy(job, 1))
    assert controller.next() is not None


@pytest.mark.slow
def test_a_foreign_study_is_sampled_at_random() -> None:
    study = optuna.create_study(sampler=make_sampler("ehvi", 0, make_space()))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=12)
    assert len({trial.params["x"] for trial in study.trials}) == 12


def test_it_needs_a_space() -> None:
    with pytest.raises(ValueError, match="needs the space"):
        make_sampler("ehvi", 0)
    assert set(SAMPLERS) == {"ehvi", "tpe", "nsga2", "random"}


@pytest.mark.slow
def test_one_lucky_score_does_not_bar_more_expensive_networks() -> None:
    """Top-1 rises by 4 points with a tenfold cost, and one cheap network scores 5 points too much:
    by its score nothing could be gained above it."""
    expensive = 0
    for seed in range(4):
        controller = controller_in_memory(load_space("digits"), num_trials=40, seed=seed)
        costs: list[int] = []
        lucky = 0
        for _ in range(24):
            job = controller.next()
            assert job is not None
            flops = closed_form(job.config).flops
            costs.append(flops)
            top1 = 70 + 4 * np.log10(flops)
            if not lucky and 3e4 < flops < 1e5:
                lucky, top1 = flops, top1 + 5
            for epoch in range(1, controller.epochs + 1):
                if controller.report(job.number, epoch, top1) is Decision.STOP:
                    break
            controller.finish(job.number, seconds=1.0, device="cpu")
        assert lucky
        expensive += sum(cost > lucky for cost in costs[12:])
    assert expensive >= 4 * 5


@pytest.mark.slow
def test_after_the_cheapest_come_four_networks_that_are_alike_in_all_stages() -> None:
    """One random draw of `hybrid_fashion` in five is."""
    for seed in range(3):
        controller = controller_in_memory(load_space("hybrid_fashion"), num_trials=5, seed=seed)
        keys_of(controller)
        mixers = [
            {value for key, value in trial.params.items() if key.endswith("token_mixer")}
            for trial in controller.trials
        ]
        assert all(len(different) == 1 for different in mixers[1:])
        assert len(set.union(*mixers)) >= 4  # and take turns


@pytest.mark.slow
def test_each_mixer_is_tried_in_each_stage() -> None:
    """Only three mixers of `images_64` are on offer in all stages: none of the first five networks,
    which are alike in all stages, has another one."""
    space = load_space("images_64")
    offered = {place for one in SpacePool(space, 0).sample() for place in enumerate(one.mixers)}
    assert len(offered) == 14
    for seed in range(3):
        controller = controller_in_memory(space, num_trials=30, seed=seed)
        keys_of(controller)
        networks = [trial.network for trial in controller.trials]
        assert {place for one in networks for place in enumerate(mixers_of(one))} == offered


@pytest.mark.slow
def test_a_mixer_is_tried_in_a_network_that_is_not_cheap() -> None:
    """Where more FLOPs are worth most to cheap networks, the largest gain is expected of these, and
    they are too weak to show what a mixer is worth."""
    space, store = load_space("images_64"), MemoryStore({})
    store.study.sampler = EHVISampler(SpacePool(space, 0), 0, limits=space.config.limits)
    seen, tries = set[tuple[int, tuple[str, ...]]](), 0
    for number in range(20):
        trial = store.ask()
        config = space.suggest(trial)
        cost, places = closed_form(config), set(enumerate(mixers_of(config)))
        network = {"config": config.to_tree(), "key": config.key, "flops": cost.flops}
        store.describe(trial.number, "network", network | {"num_params": cost.num_params})
        if number > 5 and number % 3 == 0 and not places <= seen:
            known = map(as_record, store.study.get_trials(deepcopy=False)[:number])
            costs = [member.flops for member in front_of(known, ["flops"])]
            assert cost.flops >= (min(costs) * max(costs)) ** 0.5
            tries += 1
        seen |= places
        top1 = 100 / (1 + math.exp(2 - 1.6 * math.log(cost.flops / 3e5)))
        store.describe(trial.number, "curve", [top1])
        store.tell(trial.number, Outcome.COMPLETE, (top1, float(cost.flops)))
    assert tries >= 4
