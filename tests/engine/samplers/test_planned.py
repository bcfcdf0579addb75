"""A sampler that chooses whole networks answers every question of a draw as its plan does."""

from __future__ import annotations

import optuna
import pytest
from optuna.samplers import RandomSampler

from tests.engine.conftest import make_space
from vitnas.engine.samplers.planned import PlannedSampler
from vitnas.engine.samplers.pool import Proposal, SpacePool


class _Chosen(PlannedSampler):
    """Always this network, or none."""

    plan: Proposal | None = None

    def choose(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> Proposal | None:
        return self.plan


@pytest.fixture
def sampler() -> _Chosen:
    return _Chosen(RandomSampler(0))


@pytest.fixture
def proposal() -> Proposal:
    return SpacePool(make_space(), 0).sample()[0]


def drawn(sampler: optuna.samplers.BaseSampler) -> optuna.Trial:
    """A trial to which the space's network was suggested."""
    trial = optuna.create_study(sampler=sampler).ask()
    config = make_space().suggest(trial)
    trial.set_user_attr("key", config.key)
    return trial


def test_the_network_of_the_plan_is_drawn(sampler: _Chosen, proposal: Proposal) -> None:
    sampler.plan = proposal
    trial = drawn(sampler)
    assert trial.params == proposal.params
    assert trial.user_attrs["key"] == proposal.key


def test_without_a_plan_another_sampler_answers(sampler: _Chosen) -> None:
    first = drawn(sampler)
    assert first.params == drawn(RandomSampler(0)).params


def test_only_what_is_asked_for_is_answered(sampler: _Chosen, proposal: Proposal) -> None:
    """As Optuna's samplers do that fix some answers and ask another sampler for the rest."""
    sampler.plan = proposal
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()._get_latest_trial()
    asked = sampler.infer_relative_search_space(study, trial)
    asked.pop(fixed := next(iter(asked)))
    answers = sampler.sample_relative(study, trial, asked)
    assert answers == {k: v for k, v in proposal.params.items() if k != fixed}
