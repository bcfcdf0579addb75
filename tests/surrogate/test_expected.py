"""What is expected of each network of a run: nearer to the truth than its score, and honest."""

from __future__ import annotations

import numpy as np
import pytest

from vitnas.noise import Noise
from vitnas.surrogate.evidence import FEWEST, MOST
from vitnas.surrogate.evidence import scores as known
from vitnas.surrogate.expected import expected_top1

IMAGES = 400
NOISE = Noise(1.0, 4, IMAGES)


def networks(seed: int, number: int = 40) -> tuple[list[dict[str, float]], np.ndarray]:
    """Facts of networks and their true top-1, which follows from width and mixer."""
    draw = np.random.default_rng(seed)
    widths, mixers = draw.uniform(3, 7, number), draw.integers(0, 2, number)
    facts = [{"width": w, f"mixer = {m}": 1.0} for w, m in zip(widths, mixers, strict=True)]
    return facts, 100 / (1 + np.exp(-(0.3 * widths + 0.3 * mixers - 0.4)))


def scores(true: np.ndarray, seed: int) -> list[list[float]]:
    hits = np.random.default_rng(seed).binomial(IMAGES, true / 100)
    return [[100 * hit / IMAGES] for hit in hits.tolist()]


def test_it_is_nearer_to_the_truth_than_the_scores_and_says_how_near() -> None:
    off, apart = [], []
    for seed in range(6):
        facts, true = networks(seed)
        seen = scores(true, seed)
        found = np.array(expected_top1(facts, seen, NOISE))
        off.append([np.square(found[:, 0] - true).mean(), np.square(np.ravel(seen) - true).mean()])
        apart.append((found[:, 0] - true) / found[:, 1])
    by_all, by_one = np.mean(off, axis=0)
    assert by_all < 0.4 * by_one
    assert 0.7 < np.sqrt(np.mean(np.square(apart))) < 1.5


def test_with_many_images_it_is_the_score() -> None:
    facts, true = networks(0)
    exact = true + np.random.default_rng(0).normal(0, 2, len(true))
    found = expected_top1(facts, [[top1] for top1 in exact], Noise(1.0, 4, 10**7))
    assert [one.top1 for one in found] == pytest.approx(exact.tolist(), abs=0.05)
    assert max(one.error for one in found) < 0.05


def test_replicates_count() -> None:
    """The more often a network was trained, the less the others say about it."""
    facts, true = networks(1)
    seen = scores(true, 1)
    once = expected_top1(facts, [[95.0], *seen[1:]], NOISE)[0]
    often = expected_top1(facts, [[95.0] * 30, *seen[1:]], NOISE)[0]
    assert once.top1 < often.top1 - 2
    assert often.top1 > 93
    assert often.error < once.error


def test_few_networks_keep_their_scores() -> None:
    facts, true = networks(2, FEWEST - 1)
    seen = scores(true, 2)
    found = expected_top1(facts, seen, NOISE)
    assert [one.top1 for one in found] == [top1 for (top1,) in seen]
    assert found[0].error == pytest.approx(NOISE.error(found[0].top1))
    assert expected_top1([], [], NOISE) == []


def test_a_network_far_below_the_others_keeps_its_score() -> None:
    facts, true = networks(3)
    seen = scores(true, 3)
    found = expected_top1([*facts, facts[0]], [*seen, [10.0]], NOISE)
    assert found[-1].top1 == 10.0
    assert found[0].top1 == pytest.approx(expected_top1(facts, seen, NOISE)[0].top1, abs=0.5)


def test_equal_scores_are_expected_again() -> None:
    facts, _ = networks(4)
    found = expected_top1(facts, [[80.0]] * len(facts), NOISE)
    assert {one.top1 for one in found} == {80.0}


def test_of_many_networks_the_lucky_ones_are_not_believed() -> None:
    """With more than are learned from, what is expected is as near to the truth, and as honest."""
    facts, true = networks(5, MOST + 700)
    seen = scores(true, 5)
    found = np.array(expected_top1(facts, seen, NOISE))
    off, best = found[:, 0] - true, np.argsort(np.ravel(seen))[-MOST:]
    assert abs(off[best].mean()) < 0.2
    assert np.square(off).mean() < 0.1 * np.square(np.ravel(seen) - true).mean()
    assert 0.5 < np.sqrt(np.mean(np.square(off / found[:, 1]))) < 1.5


def test_a_network_that_is_not_learned_from_has_its_own_replicates() -> None:
    facts, true = networks(6, 2 * MOST)
    seen = scores(true, 6)
    learned = set(known(seen, NOISE).learned.tolist())
    assert len(learned) == MOST
    other = min(set(range(len(facts))) - learned)
    seen[other] = [95.0] * 30
    found = expected_top1(facts, seen, NOISE)[other]
    assert found.top1 > 93
    assert found.error < NOISE.error(95.0)
