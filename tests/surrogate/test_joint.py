"""Expected top-1 of several networks together: correlations, and networks that were not trained."""

from __future__ import annotations

import numpy as np
import pytest

from tests.report.test_effects import run as made_up
from tests.surrogate.test_expected import networks
from tests.surrogate.test_expected import scores as made_scores
from vitnas.noise import Noise, measure
from vitnas.surrogate.evidence import MOST, kernels_of, posterior, scores
from vitnas.surrogate.expected import expected_top1
from vitnas.surrogate.features import Encoder, facts_of
from vitnas.surrogate.joint import correlations, with_untrained
from vitnas.surrogate.odds import percent, points


def _known(number: int = 40) -> tuple[list[dict[str, float]], list[tuple[float, ...]], Noise]:
    trials = made_up(number, 0, 400).complete
    trainings = [trial.trainings for trial in trials]
    return [facts_of(t.network, t) for t in trials], trainings, measure(trainings, 400)


def test_they_are_correlations() -> None:
    facts, trainings, noise = _known()
    found = correlations(facts, trainings, noise, range(len(facts)))
    np.testing.assert_allclose(found, found.T, atol=1e-9)
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert np.linalg.eigvalsh(found).min() > -1e-9
    assert np.abs(found[~np.eye(len(found), dtype=bool)]).max() > 0.02


def test_a_part_is_the_part_of_the_whole() -> None:
    facts, trainings, noise = _known()
    whole = correlations(facts, trainings, noise, range(len(facts)))
    part = correlations(facts, trainings, noise, [7, 2, 11])
    np.testing.assert_allclose(part, whole[np.ix_([7, 2, 11], [7, 2, 11])], atol=1e-9)


def test_alike_networks_err_alike() -> None:
    facts, trainings, noise = _known()
    facts, trainings = [*facts, facts[5]], [*trainings, trainings[5]]
    found = correlations(facts, trainings, noise, range(len(facts)))
    twins = found[5, -1]
    others = np.delete(found[5], [5, len(facts) - 1])
    assert twins > others.max() > 0


def test_of_many_networks_those_that_are_asked_are_learned_from() -> None:
    """Also where they are not among the `MOST` that the model is content with."""
    facts, true = networks(0, MOST + 100)
    seen, noise = made_scores(true, 0), measure([[50.0]], 400)
    learned = scores(seen, noise).learned.tolist()
    others = sorted(set(range(len(facts))) - set(learned))[:3]
    found = with_untrained(facts, seen, noise, others, [])
    assert found is not None
    expected = [expected_top1(facts, seen, noise)[index].top1 for index in others]
    assert percent(found[0]) == pytest.approx(expected, abs=0.3)
    assert np.diag(correlations(facts, seen, noise, others)) == pytest.approx(1.0)


def test_the_variances_are_those_of_expected_top1() -> None:
    facts, trainings, noise = _known()
    known = scores(trainings, noise)
    usual = known.usual.tolist()
    odds = known.odds[usual]
    kernels = kernels_of(*2 * [Encoder(facts).encode([facts[index] for index in usual])])
    _, covariance = posterior(kernels, known.standard(), lambda p: 2 * (p.covariance(kernels),))
    variances = np.diag(covariance)
    expected = [expected_top1(facts, trainings, noise)[index] for index in usual]
    deviations = [one.error / float(points(one.top1)) for one in expected]
    np.testing.assert_allclose(np.sqrt(variances) * odds.std(), deviations, rtol=1e-6)


def test_few_networks_are_independent() -> None:
    facts, trainings, noise = _known()
    np.testing.assert_array_equal(correlations(facts[:5], trainings[:5], noise, [0, 3]), np.eye(2))
    assert correlations(facts, trainings, noise, []).shape == (0, 0)


def test_one_far_below_is_independent_of_all() -> None:
    facts, trainings, noise = _known()
    trainings[3] = (1.0,)
    found = correlations(facts, trainings, noise, range(len(facts)))
    assert np.abs(np.delete(found[3], 3)).max() == pytest.approx(0.0)


def test_trained_networks_keep_their_expected_top1_beside_untrained_ones() -> None:
    """Nearly: the scales of the facts are those of all."""
    facts, trainings, noise = _known()
    expected = expected_top1(facts, trainings, noise)
    of = scores(trainings, noise).usual.tolist()[:5]
    found = with_untrained(facts, trainings, noise, of, [facts[7], facts[9]])
    assert found is not None
    mean, covariance = found
    for place, index in enumerate(of):
        assert percent(mean[place]) == pytest.approx(expected[index].top1, abs=0.02)
        error = np.sqrt(covariance[place, place]) * points(expected[index].top1)
        assert error == pytest.approx(expected[index].error, rel=0.02)


def test_an_untrained_network_is_less_certain_than_its_trained_twin() -> None:
    """It has the twin's f, but what is its own is not known."""
    facts, trainings, noise = _known()
    found = with_untrained(facts, trainings, noise, [7], [facts[7]])
    assert found is not None
    _, covariance = found
    assert covariance[1, 1] > covariance[0, 0]
    assert covariance[0, 1] > 0.5 * covariance[0, 0]
    assert np.linalg.eigvalsh(covariance).min() > -1e-12


def test_too_few_networks_say_nothing_of_others() -> None:
    facts, trainings, noise = _known(6)
    assert with_untrained(facts, trainings, noise, [0], [facts[1]]) is None
