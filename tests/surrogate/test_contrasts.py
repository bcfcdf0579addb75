"""Differences between networks, trained or not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.surrogate.test_expected import IMAGES, NOISE, networks, scores
from vitnas.noise import Noise
from vitnas.surrogate.contrasts import differences

MIXERS = ({"width": 5.0, "mixer = 0": 1.0}, {"width": 5.0, "mixer = 1": 1.0})
SECOND_LESS_FIRST = np.array([[-1.0, 1.0]])


def test_the_true_difference_lies_where_it_is_said_to_lie() -> None:
    """The truth has 0.3 in log-odds between the mixers."""
    off = []
    for seed in range(12):
        facts, true = networks(seed)
        found = differences(facts, scores(true, seed), NOISE, MIXERS, SECOND_LESS_FIRST)
        assert found is not None
        mean, covariance = found
        off.append((mean[0] - 0.3) / np.sqrt(covariance[0, 0]))
    assert 0.4 < np.sqrt(np.mean(np.square(off))) < 1.6


def test_more_images_tell_more() -> None:
    facts, true = networks(0)
    few = differences(facts, scores(true, 0), NOISE, MIXERS, SECOND_LESS_FIRST)
    exact = [[top1] for top1 in true.tolist()]
    many = differences(facts, exact, Noise(1.0, 4, 100 * IMAGES), MIXERS, SECOND_LESS_FIRST)
    assert few is not None
    assert many is not None
    assert many[1][0, 0] < 0.3 * few[1][0, 0]
    assert many[0][0] == pytest.approx(0.3, abs=0.03)


def test_a_network_does_not_differ_from_itself() -> None:
    facts, true = networks(0)
    mean, covariance = differences(
        facts, scores(true, 0), NOISE, (MIXERS[0], MIXERS[0]), SECOND_LESS_FIRST
    ) or pytest.fail("enough networks are known")
    assert abs(mean[0]) < 1e-9
    assert abs(covariance[0, 0]) < 1e-9


def test_what_was_never_trained_is_uncertain() -> None:
    facts, true = networks(0)
    third = {"width": 5.0, "mixer = 2": 1.0}
    known = differences(facts, scores(true, 0), NOISE, MIXERS, SECOND_LESS_FIRST)
    unknown = differences(facts, scores(true, 0), NOISE, (MIXERS[0], third), SECOND_LESS_FIRST)
    assert known is not None
    assert unknown is not None
    assert unknown[1][0, 0] > 4 * known[1][0, 0]


def test_few_networks_tell_nothing() -> None:
    facts, true = networks(0, number=5)
    assert differences(facts, scores(true, 0), NOISE, MIXERS, SECOND_LESS_FIRST) is None
