"""A held sampler proposes only networks of its set: each once, and the nearest to the wish."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.samplers import BaseSampler, RandomSampler

from tests.replay.made_up import TABLE
from vitnas.replay.held import HeldSampler

PROPOSALS = [network.proposal for network in TABLE.networks[:6]]
KEYS = [proposal.key for proposal in PROPOSALS]


class Wishes(BaseSampler):
    """Proposes the network of these parameters, again and again."""

    def __init__(self, params: Any) -> None:
        self._params = params

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: Any, name: str, offered: Any) -> Any:
        return self._params[name]


def proposed(sampler: BaseSampler, number: int, seed: int = 0) -> list[str]:
    """Keys of the networks of `number` trials."""
    held = HeldSampler(sampler, TABLE.space, PROPOSALS, seed)
    study = optuna.create_study(sampler=held)
    keys = []
    for _ in range(number):
        trial = study.ask()
        keys.append(TABLE.space.suggest(trial).key)
        trial.set_user_attr("network", {"key": keys[-1]})
        study.tell(trial, 0.0)
    return keys


@pytest.mark.parametrize("sampler", [RandomSampler(0), Wishes(PROPOSALS[0].params)])
def test_every_network_of_the_set_comes_once(sampler: BaseSampler) -> None:
    assert sorted(proposed(sampler, len(KEYS))) == sorted(KEYS)


def test_the_seed_decides_the_order_of_random_networks() -> None:
    first, again, other = (proposed(RandomSampler(0), len(KEYS), seed) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("index", range(len(KEYS)))
def test_a_wish_in_the_set_is_its_own_nearest(index: int) -> None:
    first, second = proposed(Wishes(PROPOSALS[index].params), 2)
    assert first == KEYS[index]
    assert second != first, "it is known now"


def test_without_an_unknown_network_the_sampler_itself_answers() -> None:
    outside = TABLE.networks[10].proposal
    assert proposed(Wishes(outside.params), len(KEYS) + 1)[-1] == outside.key
