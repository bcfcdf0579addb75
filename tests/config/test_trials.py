"""Who answers a space's questions: in what order everything is listed, and what chance does."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.trees import space_of
from vitnas.config.space import load_space
from vitnas.config.trials import LikeTrial, PositionTrial, RandomTrial, Refused, Trial, every


def word(trial: Trial) -> str:
    """`a0`, `a2`, `b` or a refusal: the second question depends on the first answer."""
    letter = str(trial.suggest_categorical("letter", ["a", "b", "c"]))
    if letter == "c":
        raise Refused("is no letter of ours")
    return letter + str(trial.suggest_int("number", 0, 2, step=2)) if letter == "a" else letter


def test_everything_is_listed_once_the_last_question_turning_fastest() -> None:
    assert list(every(word)) == ["a0", "a2", "b"]


def test_positions_beyond_what_is_on_offer_start_again() -> None:
    trial = PositionTrial([3, 5])
    assert word(trial) == "a2"
    assert trial.wheels == [(0, 3), (1, 2)]
    assert word(PositionTrial()) == "a0"


def test_a_continuous_range_cannot_be_listed() -> None:
    with pytest.raises(ValueError, match="rate is continuous"):
        list(every(lambda trial: trial.suggest_float("rate", 0.0, 1.0)))
    stepped = every(lambda trial: trial.suggest_float("rate", 0.0, 1.0, step=0.5))
    assert list(stepped) == [0.0, 0.5, 1.0]


def test_the_mean_number_of_branches_is_that_of_different_draws() -> None:
    """Knuth's estimate: here 3 x 2 after `a` and 3 after `b` and `c`, 4 in the mean."""
    sizes = []
    for seed in range(3000):
        trial = RandomTrial(seed)
        letter = trial.suggest_categorical("letter", ["a", "b", "c"])
        if letter == "a":
            trial.suggest_int("number", 0, 2, step=2)
        sizes.append(trial.branches)
    assert sum(sizes) / len(sizes) == pytest.approx(4, rel=0.05)


def test_chance_keeps_to_ends_and_steps() -> None:
    trial = RandomTrial(0)
    assert {trial.suggest_int("n", 1, 9, step=4) for _ in range(50)} == {1, 5, 9}
    assert {trial.suggest_int("n", 1, 3, log=True) for _ in range(50)} == {1, 2, 3}
    assert all(0.1 <= trial.suggest_float("x", 0.1, 10.0, log=True) <= 10.0 for _ in range(50))
    assert trial.branches == math.inf


@pytest.mark.slow
@given(st.integers(0, 1000))
def test_the_answers_of_another_draw_give_its_network(seed: int) -> None:
    space = load_space("digits")
    first = LikeTrial({}, seed)
    config = space.suggest(first)
    again = LikeTrial(first.params, seed + 1)
    assert space.suggest(again) == config
    assert again.params == first.params


def test_one_answer_of_a_draw_is_changed() -> None:
    """What is not on offer is drawn instead, and what stands behind `@` does not count."""
    trial = LikeTrial({"mixer@0,2": "mhsa", "depth": 7, "rate": 0.5})
    assert trial.suggest_categorical("mixer@1", ["ska", "mhsa"]) == "mhsa"
    assert trial.suggest_int("depth", 1, 3) in (1, 2, 3)
    assert trial.suggest_float("rate", 0.0, 1.0) == 0.5
    assert trial.params["mixer"] == "mhsa"
    assert trial.params["depth"] != 7


def test_a_classifier_of_all_places_is_offered_where_it_is_linear() -> None:
    """No draw is refused, whichever of the two is asked first."""
    axes = {
        "global_pool": {"choice": ["avg", "flatten"]},
        "head": {"kind": {"choice": ["linear", "mlp"]}},
    }
    space = space_of({**axes, "stages": [{"token_mixer": "mbconv", "embed_dim": 8}]})
    found = [space.suggest(RandomTrial(seed)) for seed in range(40)]
    heads = {(config.pool, config.head.kind) for config in found}
    assert heads == {("avg", "linear"), ("avg", "mlp"), ("flatten", "linear")}
