"""Two sides at equal FLOPs."""

from __future__ import annotations

import pytest

from vitnas.pairing import Scored, places_of, shares_of

OURS = Scored(5, 60, 60)
SMALL, LARGE = Scored(5, 50, 50, "plain"), Scored(500, 90, 90, "plain")


def test_one_number_of_flops_is_a_range_of_its_own() -> None:
    (only,) = places_of([OURS], [SMALL], 5, 5)
    assert only.gain == 10
    assert shares_of([only]) == {OURS: 1, SMALL: -1}


def test_the_shares_of_a_side_sum_to_one() -> None:
    """Along the line between two members, each counts by its nearness: half of the way, half."""
    shares = shares_of(places_of([OURS], [SMALL, LARGE], 5, 500))
    assert shares == {
        OURS: pytest.approx(1),
        SMALL: pytest.approx(-0.5),
        LARGE: pytest.approx(-0.5),
    }


def test_who_contributes_nothing_has_no_share() -> None:
    weak = Scored(5, 10, 99, "weak")
    assert set(shares_of(places_of([OURS], [SMALL, weak], 5, 50))) == {OURS, SMALL}
    assert set(shares_of(places_of([OURS], [SMALL, LARGE], 600, 900))) == {OURS, LARGE}
