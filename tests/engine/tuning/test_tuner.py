"""Known answers: the best recipe is found, poor ones are stopped, chance is told apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log10
from statistics import fmean

import pytest

from tests.engine.conftest import make_space
from vitnas.config.data import DataConfig
from vitnas.config.training import ProxyConfig
from vitnas.config.trials import RandomTrial
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.tuning.knobs import Recipes
from vitnas.engine.tuning.tuner import Tuner, gain_of
from vitnas.records import Outcome

NETWORKS = [make_space().suggest(RandomTrial(seed)) for seed in (0, 1, 2, 5)]
RECIPES = Recipes(ProxyConfig(lr=3e-3), DataConfig(name="digits"), 1000)


def best_at(rate: float) -> Callable[[Request], Answer]:
    """Trainings that lose 20 points for each factor of ten that the rate is off."""

    def answer(request: Request) -> Answer:
        top1 = 90.0 - 20 * abs(log10(request.proxy.lr / rate)) + int(request.subject.key, 16) % 3
        return Answer(outcome=Outcome.COMPLETE, curve=(top1,))

    return answer


def tuned(
    answer: Callable[[Request], Answer], trials: int, asked: list[str] | None = None
) -> Tuner:
    def train(requests: Sequence[Request]) -> Mapping[str, Answer]:
        if asked is not None:
            asked.extend(request.key for request in requests)
        return {request.key: answer(request) for request in requests}

    tuner = Tuner(RECIPES, NETWORKS, 10, 0, train)
    tuner.run(trials)
    return tuner


def test_the_best_rate_is_found() -> None:
    tuner = tuned(best_at(1e-2), 20)
    assert len(tuner.tried) == 20
    assert 0.5e-2 < tuner.best.proxy.lr < 2e-2
    assert tuner.best.gain > 7
    first = next(one for one in tuner.tried if one.number == 0)
    assert first.proxy == RECIPES.own
    assert first.gain == 0


def test_worse_ones_are_stopped_after_two_networks_and_the_best_never_is() -> None:
    tuner = tuned(best_at(1e-2), 20)
    stopped = [one for one in tuner.tried if len(one.gains) < len(NETWORKS)]
    assert len(stopped) > 5
    assert all(one.gain < tuner.best.gain for one in stopped)
    assert {len(one.gains) for one in stopped} == {2}


def test_the_own_recipe_wins_where_it_is_the_best() -> None:
    assert tuned(best_at(3e-3), 8).best.number == 0


def test_the_same_is_asked_again() -> None:
    first: list[str] = []
    second: list[str] = []
    tuned(best_at(1e-2), 12, first)
    tuned(best_at(1e-2), 12, second)
    assert first == second


def test_a_training_that_diverges_counts_as_a_guess() -> None:
    def answer(request: Request) -> Answer:
        if request.proxy.lr > 5e-3:
            return Answer(outcome=Outcome.DIVERGED, error="Diverged: loss is nan")
        return best_at(3e-3)(request)

    tuner = tuned(answer, 4)
    tops = {one.number: one for one in tuner.tried}
    assert tuner.best.number == 0
    assert tops[1].gain == pytest.approx(
        10 - sum(a.top1 or 0 for a in tops[0].answers.values()) / 4
    )


def test_the_comparison_has_another_seed() -> None:
    asked: list[str] = []
    tuner = tuned(best_at(1e-2), 8, asked)
    before = set(asked)
    gain = tuner.compare(tuner.best, 10_000)
    assert len(asked) == len(set(asked[-8:]) - before) + len(asked) - 8
    assert gain.points == pytest.approx(tuner.best.gain)
    assert gain.is_sure


def test_the_comparison_is_the_mean_over_its_seeds() -> None:
    """A recipe that is 10 to 18 points better, by the training's seed."""
    moved: dict[int, int] = {}

    def answer(request: Request) -> Answer:
        is_better = request.proxy.lr == 6e-3
        moved[request.seed] = request.seed % 9
        curve = (60.0 + is_better * (10 + moved[request.seed]),)
        return Answer(outcome=Outcome.COMPLETE, curve=curve)

    asked: list[str] = []
    tuner = tuned(answer, 8, asked)
    assert tuner.best.proxy.lr == 6e-3
    moved.clear()
    one = tuner.compare(tuner.best, 10)
    first = list(moved.values())
    three = tuner.compare(tuner.best, 10, seeds=3)
    assert len(first) == len(NETWORKS)
    assert len(moved) == 3 * len(NETWORKS)
    assert one.points == pytest.approx(10 + fmean(first))
    assert three.points == pytest.approx(10 + fmean(moved.values()))
    assert three.points != pytest.approx(one.points)
    assert three.error == pytest.approx(one.error / 3**0.5, rel=0.1)
    assert len(set(asked[-24:])) == 24
    assert set(asked[-32:-24]) <= set(asked[-24:])


def test_the_error_of_a_gain() -> None:
    spread = gain_of([50.0, 60.0, 70.0], [52.0, 64.0, 76.0], 10**8)
    assert spread.points == pytest.approx(4.0)
    assert spread.error == pytest.approx(2 / 3**0.5)
    few = gain_of([50.0, 50.0], [52.0, 52.0], 100)  # sqrt(50 50 / 100 + 52 48 / 100) / sqrt(2)
    assert few.points == pytest.approx(2.0)
    assert few.error == pytest.approx(4.998, abs=1e-3)
    assert gain_of([50.0, 50.0], [52.0, 52.0], 100, 4).error == pytest.approx(few.error / 2)
    assert not few.is_sure
