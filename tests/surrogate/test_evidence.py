"""The likely priors, each by its evidence."""

from __future__ import annotations

import numpy as np
import pytest

from vitnas.noise import Noise
from vitnas.surrogate.evidence import FEWEST, kernels_of, scores, weighted_priors

NOISE = Noise(1.0, 4, 400)


def test_weights_add_up_to_one_and_what_fits_best_has_most() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 3))
    smooth, rough = x[:, 0], draw.normal(size=60)
    for y, most_noise in ((smooth, 0.5), (rough, 1.0)):
        found = weighted_priors(kernels_of(x, x), y / y.std(), np.full(60, most_noise))
        assert sum(weight for _, weight in found) == pytest.approx(1)
    known = np.full(60, 0.01)
    clear = weighted_priors(kernels_of(x, x), smooth / smooth.std(), known)
    chance = weighted_priors(kernels_of(x, x), rough / rough.std(), known)
    own = [sum(prior.own * weight for prior, weight in found) for found in (clear, chance)]
    assert own[0] < 0.02
    assert own[1] > 0.1


def test_a_network_far_below_the_others_is_not_usual() -> None:
    known = scores([[90.0 + step] for step in range(FEWEST)] + [[10.0]], NOISE)
    assert known.usual.tolist() == list(range(FEWEST))
    assert known.says_more
    assert not scores([[90.0]] * 20, NOISE).says_more
    assert not scores([], NOISE).says_more


def test_scores_of_all_or_nothing_are_finite() -> None:
    known = scores([[0.0], [100.0], [50.0, 60.0]], NOISE)
    assert np.isfinite(known.odds).all()
    assert known.top1[2] == 55
