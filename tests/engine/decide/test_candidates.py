"""Networks to train: new ones within the limits; others are answered or refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from optuna.samplers import BaseSampler, RandomSampler

from tests.engine.conftest import make_space, start
from tests.engine.decide.conftest import Make, finish_all
from vitnas.config.space import SearchSpace
from vitnas.cost.survey import networks_within
from vitnas.engine.decide.candidates import REPEATS_BEFORE_RANDOM
from vitnas.engine.samplers.ehvi import EHVISampler
from vitnas.engine.store.study import read_run
from vitnas.records import Outcome


def test_duplicates_are_answered_from_the_study(controller_of: Make, tmp_path: Path) -> None:
    """54 networks, 40 trainings: random draws must meet some of them again."""
    finish_all(controller_of(num_trials=40))
    run = read_run(tmp_path)
    duplicates = [trial for trial in run.trials if trial.outcome is Outcome.DUPLICATE]
    assert duplicates
    by_number = {trial.number: trial for trial in run.trials}
    for trial in duplicates:
        assert trial.duplicate_of is not None
        assert by_number[trial.duplicate_of].key == trial.key
        assert by_number[trial.duplicate_of].outcome is Outcome.COMPLETE
    assert len(run.complete) == 40


def test_a_small_space_ends_when_it_is_exhausted(controller_of: Make) -> None:
    model = dict(make_space().config.model)
    model["stages"] = [{"token_mixer": "mhsa", "embed_dim": {"choice": [32, 64]}}]
    model["groups"] = "[1]"
    controller = controller_of(make_space(model=model), num_trials=9)
    finish_all(controller)
    assert controller.cut_short_by == "the space has nothing new to show"
    assert controller.done
    assert controller.num_ended == 2


def test_a_space_of_which_nearly_nothing_is_within_the_limits_says_so(
    controller_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.engine.decide.candidates.MAX_FRUITLESS", 25)
    controller = controller_of(make_space(limits={"flops": {"max": 10}}), sampler="random")
    finish_all(controller)
    assert controller.done
    assert len(controller.trials) == 25
    assert controller.cut_short_by == "25 draws in a row were known or outside the limits"


@pytest.mark.slow
def test_so_does_one_of_which_few_networks_are_within_the_limits(controller_of: Make) -> None:
    """What is drawn then is outside the limits, and no duplicate."""
    space = make_space()
    within = min(cost.flops for _, cost in networks_within(space))
    controller = controller_of(make_space(limits={"flops": {"max": within}}), num_trials=9)
    finish_all(controller)
    assert controller.cut_short_by == "the space has nothing new to show"
    assert controller.num_ended == 1
    assert len(controller.trials) < 100


def test_a_sampler_that_finds_nothing_is_not_asked_for_long(
    controller_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.engine.decide.candidates.MISSES_BEFORE_RANDOM", 4)
    monkeypatch.setattr("vitnas.engine.decide.candidates.MAX_FRUITLESS", 12)
    asked: list[int] = []
    real = EHVISampler.choose

    def choose(self: EHVISampler, study: Any, trial: Any) -> Any:
        asked.append(trial.number)
        return real(self, study, trial)

    monkeypatch.setattr(EHVISampler, "choose", choose)
    controller = controller_of(make_space(limits={"flops": {"max": 10}}), sampler="ehvi")
    finish_all(controller)
    assert len(controller.trials) == 12
    assert len(set(asked)) == 4


def test_what_is_over_the_limits_costs_nothing(controller_of: Make, tmp_path: Path) -> None:
    space = make_space(limits={"flops": {"max": 4.0e5}})
    finish_all(controller_of(space, num_trials=10))
    run = read_run(tmp_path)
    refused = [trial for trial in run.trials if trial.outcome is Outcome.REFUSED]
    assert refused
    assert all(trial.flops > 4e5 and not trial.curve for trial in refused)
    assert all("above the limit 400 k" in str(trial.error) for trial in refused)
    assert all(trial.flops <= 4e5 for trial in run.complete)
    assert len(run.complete) == 10


class OneTrack(BaseSampler):
    """Proposes the same network again and again."""

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: Any, name: str, offered: Any) -> Any:
        return offered.choices[0] if hasattr(offered, "choices") else offered.low


def one_track(name: str, seed: int, space: SearchSpace) -> BaseSampler:
    return RandomSampler(seed) if name == "random" else OneTrack()


def test_after_repeats_a_draw_is_random(controller_of: Make, tmp_path: Path) -> None:
    """The sampler repeats itself for ever, and the search still finds networks."""
    finish_all(controller_of(num_trials=4, sampler="tpe", samplers=one_track))
    run = read_run(tmp_path)
    assert len({trial.key for trial in run.complete}) == 4
    outcomes = [trial.outcome for trial in run.trials]
    assert outcomes[0] is Outcome.COMPLETE
    assert outcomes[1 : 1 + REPEATS_BEFORE_RANDOM] == [Outcome.DUPLICATE] * REPEATS_BEFORE_RANDOM


def test_a_network_that_is_in_training_is_known(controller_of: Make) -> None:
    controller = controller_of(num_trials=40)
    jobs = [start(controller) for _ in range(40)]
    assert len({job.config.key for job in jobs}) == 40
