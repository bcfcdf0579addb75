"""The sampler that knows costs: its parts, its promises, and Optuna's own tests of samplers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.conftest import accuracy, make_space, train, train_some
from vitnas.config.space import SearchSpace, load_space
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.rules import Rules
from vitnas.engine.samplers import SAMPLERS, make_sampler
from vitnas.engine.samplers.ehvi import EHVISampler
from vitnas.engine.samplers.features import Encoder, facts_of
from vitnas.engine.samplers.gain import cut_budgets, expected_gain
from vitnas.engine.samplers.pool import SpacePool, propose_like
from vitnas.engine.samplers.process import Process, Scales, kernel
from vitnas.pareto import hypervolume
from vitnas.records import Outcome
from vitnas.replay.simulation import MemoryStore

pytest_samplers = pytest.importorskip("optuna.testing.pytest_samplers")


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


def controller_in_memory(space: SearchSpace, **options: object) -> Controller:
    rules = Rules(**{"num_trials": 24, **options})  # type: ignore[arg-type]
    return Controller(MemoryStore({}), space, rules)


def keys_of(controller: Controller) -> list[str]:
    while (job := controller.next()) is not None:
        train(controller, job)
    return [trial.key for trial in controller.trials]


def test_proposals_follow_from_the_seed() -> None:
    first, again = (keys_of(controller_in_memory(make_space())) for _ in range(2))
    assert first == again
    assert keys_of(controller_in_memory(make_space(), seed=1)) != first


def test_nothing_is_proposed_twice_or_outside_the_limits() -> None:
    space = make_space(limits={"flops": {"max": 5.0e5}})
    controller = controller_in_memory(space, num_trials=20)
    keys = keys_of(controller)
    outcomes = {trial.outcome for trial in controller.trials}
    assert len(set(keys)) == len(keys) == 20
    assert outcomes == {Outcome.COMPLETE}


def test_the_first_proposal_is_the_cheapest_known() -> None:
    controller = controller_in_memory(make_space())
    keys_of(controller)
    costs = [trial.flops for trial in controller.trials]
    assert costs[0] == min(costs)


def test_workers_in_flight_are_sent_to_different_places() -> None:
    """Eight proposals at once, none of them ended: different networks of different costs."""
    controller = controller_in_memory(load_space("digits"), num_trials=40)
    train_some(controller, 12)
    jobs = [controller.next() for _ in range(8)]
    costs = {closed_form(job.config).flops for job in jobs if job is not None}
    assert len(costs) >= 5


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


def test_a_foreign_study_is_sampled_at_random() -> None:
    study = optuna.create_study(sampler=make_sampler("ehvi", 0, make_space()))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=12)
    assert len({trial.params["x"] for trial in study.trials}) == 12


def test_it_needs_a_space() -> None:
    with pytest.raises(ValueError, match="needs the space"):
        make_sampler("ehvi", 0)
    assert set(SAMPLERS) == {"ehvi", "tpe", "nsga2", "random"}


def test_pool_networks_are_what_their_params_lead_to() -> None:
    space = load_space("digits")
    pool = SpacePool(space, 0, first=40, fresh=10)
    parent = pool.sample()[0].params
    offered = pool.offer(set(), [parent])
    assert len({p.key for p in offered}) == len(offered) > 30
    for proposal in [*offered[:10], *offered[-5:]]:
        assert not over_limits(proposal, space.config.limits)
        again = propose_like(space, proposal.params)
        assert again == proposal


def test_what_was_kept_is_offered_again_and_known_networks_are_not() -> None:
    pool = SpacePool(load_space("digits"), 0, first=20, fresh=0, size=5)
    offered = pool.offer(set(), [])
    pool.keep(offered)
    again = pool.offer({offered[0].key}, [])
    assert [p.key for p in again] == [p.key for p in offered[1:5]]


def test_constant_columns_are_left_out_and_unknown_facts_are_zero() -> None:
    encoder = Encoder([{"a": 1.0, "b": 5.0}, {"a": 3.0, "b": 5.0}, {"c": 1.0, "b": 5.0}])
    assert encoder.names == ("a", "c")
    rows = encoder.encode([{"a": 1.0}, {"a": 3.0}, {"c": 1.0, "zzz": 7.0}])
    assert np.allclose(rows.mean(axis=0), 0)
    assert np.allclose(rows.std(axis=0), 1)


def test_facts_tell_networks_apart_and_spellings_not() -> None:
    space = load_space("digits")
    first, *others = SpacePool(space, 0, first=30).sample()
    assert all(first.facts != other.facts for other in others)
    config = space.suggest(_Same(first.params))
    renamed = config.model_copy(update={"name": "other"})
    assert facts_of(renamed, closed_form(renamed)) == first.facts


class _Same:
    """Answers as a draw did."""

    def __init__(self, params: object) -> None:
        self._params = params

    def suggest_categorical(self, name: str, choices: object) -> object:
        return self._params[name]  # type: ignore[index]

    suggest_int = suggest_float = lambda self, name, low, high, **more: self._params[name]


def test_the_process_is_exact_while_all_observations_are_inducing() -> None:
    """Against the textbook's equations (Rasmussen and Williams 2006, Eq. 2.25 and 2.26)."""
    draw = np.random.default_rng(0)
    x, y, new = draw.normal(size=(30, 4)), draw.normal(size=30), draw.normal(size=(7, 4))
    extra, scales = draw.uniform(0, 1, 30), Scales(1.0, 0.3)
    process = Process(x, y, extra, np.arange(30), scales)
    mean, deviation = process.predict(new)
    noisy = kernel(x, x, 1.0) + np.diag(0.3 + extra)
    cross = kernel(new, x, 1.0)
    assert np.allclose(mean, cross @ np.linalg.solve(noisy, y), atol=1e-3)
    told = (cross * np.linalg.solve(noisy, cross.T).T).sum(axis=1)
    variance = np.diag(kernel(new, new, 1.0)) - told
    assert np.allclose(deviation**2 / deviation[0] ** 2, variance / variance[0], atol=1e-3)


def test_a_column_that_matters_everywhere_is_followed_beyond_what_was_seen() -> None:
    draw = np.random.default_rng(2)
    x = draw.uniform(-1, 1, size=(40, 3))
    told = Process(x, 2 * x[:, 0], np.zeros(40), np.arange(40), Scales(1.0, 0.1))
    low, high = told.predict(np.array([[1.0, 0, 0], [2.0, 0, 0]]))[0]
    assert high - low > 0.5


def test_fewer_inducing_observations_approximate_the_process() -> None:
    draw = np.random.default_rng(1)
    x = draw.normal(size=(300, 3))
    y = np.sin(x[:, 0]) + 0.1 * draw.normal(size=300)
    new = draw.normal(size=(50, 3))
    whole, part = (
        Process(x, y, np.zeros(300), np.arange(count), Scales(1.0, 0.1)).predict(new)[0]
        for count in (300, 120)
    )
    assert np.abs(whole - part).mean() < 0.1
    assert np.corrcoef(part, np.sin(new[:, 0]))[0, 1] > 0.95


points = st.lists(
    st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 30)), min_size=0, max_size=8
)


@given(points, st.tuples(st.integers(1, 25), st.integers(1, 25), st.integers(0, 35)))
def test_a_certain_accuracy_gains_exactly_its_hypervolume(
    known: list[tuple[int, int, int]], here: tuple[int, int, int]
) -> None:
    """With one scenario the expected gain is the difference of two hypervolumes; 3 objectives."""
    worst, floor = np.array([20.0, 20.0]), 0.0
    table = np.array(known, dtype=float).reshape(-1, 3)
    budgets = cut_budgets(table[:, :2], table[:, 2], worst, floor)
    costs = np.array([here[:2]], dtype=float)
    gain = expected_gain(costs, np.array([[float(here[2])]]), np.ones(1), budgets)[0]
    volumes = [
        hypervolume([(a, b, -c) for a, b, c in rows], (20.0, 20.0, -floor))
        for rows in (known, [*known, here])
    ]
    assert gain == pytest.approx(volumes[1] - volumes[0])
