"""Matched pairs of trained networks."""

from __future__ import annotations

from math import exp, inf, log

import numpy as np
import pytest

from tests.report.runs import trial
from vitnas.noise import measure
from vitnas.records import TrialRecord
from vitnas.report.matched import Matching

IMAGES = 2000
NOISE = measure([(50.0,)], IMAGES)


def made_up(seed: int, effect: float, number: int = 60) -> list[TrialRecord]:
    """Top-1 rises with FLOPs and with another answer; `mixer: b` brings `effect` points more."""
    luck = np.random.default_rng(seed)
    trials = []
    for index in range(number):
        mixer, other = luck.choice(["a", "b"]), int(luck.integers(3))
        flops = int(1e6 * exp(luck.uniform(0, log(8))))
        truth = 60 + 2 * log(flops / 1e6) + other + effect * (mixer == "b")
        top1 = 100 * luck.binomial(IMAGES, truth / 100) / IMAGES
        trials.append(trial(index, top1, flops, params={"mixer": str(mixer), "other": other}))
    return trials


@pytest.mark.parametrize("effect", [0.0, 3.0])
def test_the_interval_covers_a_known_effect(effect: float) -> None:
    found = [
        Matching(made_up(seed, effect), NOISE).between("mixer", "b", "a") for seed in range(200)
    ]
    known = [one for one in found if one is not None]
    assert len(known) > 190
    covered = sum(one.interval[0] <= effect <= one.interval[1] for one in known) / len(known)
    assert 0.9 <= covered <= 0.995
    assert np.mean([one.points for one in known]) == pytest.approx(effect, abs=0.15)


def test_each_network_is_in_one_pair_and_flops_are_alike() -> None:
    """Three of `a` stand near the one `b`; the pair is that with the same other answers."""
    here = [(0, "a", 1_000_000, 1), (1, "a", 1_050_000, 2), (2, "b", 1_090_000, 2)]
    far = [(3, "a", 5_000_000, 1), (4, "b", 5_600_000, 1)]  # 12 % apart
    more = [(5 + i, "ab"[i % 2], 9_000_000 * 2 ** (i // 2), 1) for i in range(4)]
    rows = [*here, *far, *more]
    trials = [
        trial(n, 50.0 + n, flops, params={"mixer": mixer, "other": other})
        for n, mixer, flops, other in rows
    ]
    found = Matching(trials, NOISE).between("mixer", "b", "a")
    assert found is not None
    assert found.pairs == 3
    assert found.points == pytest.approx(1.0)
    assert found.interval[0] < 0 < found.interval[1], "pairs that agree by luck have noise, too"


def test_few_pairs_say_nothing() -> None:
    trials = made_up(0, 3.0)
    assert Matching(trials[:4], NOISE).between("mixer", "b", "a") is None
    assert Matching(trials, NOISE).between("mixer", "b", "c") is None
    assert Matching([], NOISE).between("mixer", "b", "a") is None
    assert (
        Matching([trial(0, inf, params={"mixer": "a"})], NOISE).between("mixer", "a", "b") is None
    )


def test_all_values_are_ordered_by_their_mean_over_the_others() -> None:
    """`c` brings 3 points, `b` 1; `d` is too rare, and the only `e` has no like."""
    luck, trials = np.random.default_rng(0), list[TrialRecord]()
    for index in range(150):
        mixer, flops = str(luck.choice(["a", "b", "c"])), int(1e6 * exp(luck.uniform(0, 1)))
        top1 = 60 + {"a": 0, "b": 1, "c": 3}[mixer] + luck.normal(0, 0.3)
        trials.append(trial(index, top1, flops, params={"mixer": mixer}))
    trials += [trial(150 + n, 90.0, 2_000_000, params={"mixer": "d"}) for n in range(2)]
    found = Matching(trials, NOISE).judged("mixer", ["a", "b", "c", "d", "e"])
    assert found is not None
    assert [value for value, _ in found.values] == ["c", "b", "a"]
    assert [points for _, points in found.values] == pytest.approx([5 / 3, -1 / 3, -4 / 3], abs=0.2)
    assert found.ends == Matching(trials, NOISE).between("mixer", "c", "a")
    assert Matching(trials, NOISE).judged("mixer", ["d", "e"]) is None


def test_a_value_is_the_same_where_fewer_were_on_offer() -> None:
    """`groups@0,1` is `groups` of which earlier answers left two."""
    names = ["groups", "groups@0,1"]
    trials = [
        trial(n, 50.0 + n % 2, 10**6, params={names[n // 2 % 2]: "ab"[n % 2]}) for n in range(8)
    ]
    found = Matching(trials, NOISE).between("groups", "b", "a")
    assert found is not None
    assert found.points == pytest.approx(1.0)
    assert found.pairs == 4
