"""Taus against SciPy, against known answers, and against other people's trainings."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitnas.calibration.agreement import Networks, Tau, cheapest_as_good, kendall_tau

Array = npt.NDArray[np.float64]
FLOPS = np.geomspace(1e5, 1e7, 40)
pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=25)
scores = st.lists(st.integers(0, 9), min_size=12, max_size=12)


@settings(deadline=None)  # SciPy is imported by the first example
@given(pairs)
def test_tau_is_scipys_tau_b(points: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = zip(*points, strict=True)
    expected = stats.kendalltau(first, second).statistic
    found = kendall_tau(first, second)
    assert found is None if np.isnan(expected) else found == pytest.approx(expected)


@given(scores, scores)
def test_overall_is_tau_b_and_within_the_mean_of_the_bins(a: list[int], b: list[int]) -> None:
    judged = Networks(np.arange(1, 13)).judge([(a, b)])
    assert judged.overall.value == pytest.approx(kendall_tau(a, b) or 0.0)
    parts = [kendall_tau(a[i : i + 4], b[i : i + 4]) or 0.0 for i in (0, 4, 8)]
    assert judged.within.value == pytest.approx(np.mean(parts))


@given(scores, scores)
def test_only_the_order_of_a_score_counts(a: list[int], b: list[int]) -> None:
    networks = Networks(np.arange(1, 13))
    judged = networks.judge([(a, b)])
    assert networks.judge([(np.exp(a), b)]).within == judged.within
    turned = networks.judge([(np.negative(a), b)])
    assert turned.within.value == pytest.approx(-judged.within.value)
    assert turned.overall.low == pytest.approx(-judged.overall.high)


def test_a_resample_is_tau_of_the_networks_drawn() -> None:
    draw = np.random.default_rng(0)
    networks = Networks(FLOPS)
    a, b = draw.normal(size=40), draw.normal(size=40)
    found = networks.judge([(a, b)]).resampled
    for row in (0, 7):
        drawn = np.repeat(np.arange(40), networks._counts[1 + row].astype(int))
        parts = [np.intersect1d(drawn, inside) for inside in networks.bins]
        assert sum(map(len, parts)) < len(drawn) == 40
        taus = [kendall_tau(a[d], b[d]) for i in networks.bins for d in [drawn[np.isin(drawn, i)]]]
        assert found[row] == pytest.approx(np.mean([tau or 0.0 for tau in taus]))


def test_size_foretells_nothing_among_networks_of_like_size() -> None:
    draw = np.random.default_rng(1)
    truth = 30 * np.log10(FLOPS) + draw.normal(0, 3, 40)
    networks = Networks(FLOPS)
    steps = np.repeat(np.arange(4), 10)
    judged = networks.judge([(steps, truth)])
    assert judged.overall.value > 0.7
    assert judged.within == Tau(0.0, 0.0, 0.0)
    perfect = networks.judge([(truth, truth)])
    assert perfect.within == Tau(1.0, 1.0, 1.0)


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Two normal scores with correlation r have tau 2 / pi arcsin(r)."""
    expected, inside = 2 / np.pi * np.arcsin(0.7), 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        a, noise = draw.normal(size=(2, 40))
        judged = Networks(FLOPS, seed).judge([(a, 0.7 * a + np.sqrt(1 - 0.49) * noise)])
        inside += judged.overall.low <= expected <= judged.overall.high
    assert 51 <= inside <= 60


def test_what_has_no_score_ranks_last() -> None:
    networks = Networks(np.arange(1, 5))
    truth = [1.0, 2.0, 3.0, 4.0]
    assert networks.judge([([np.nan, 2.0, 3.0, 4.0], truth)]).overall.value == 1.0
    assert networks.judge([([1.0, 2.0, 3.0, -np.inf], truth)]).overall.value == 0.0


def test_pairs_are_averaged() -> None:
    up, down = [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]
    judged = Networks(np.arange(1, 5)).judge([(up, up), (down, up)])
    assert judged.overall == judged.within == Tau(0.0, 0.0, 0.0)


@pytest.mark.parametrize(("number", "bins"), [(4, 1), (9, 2), (15, 3), (16, 4), (90, 4)])
def test_bins_hold_all_networks_evenly(number: int, bins: int) -> None:
    sizes = [len(inside) for inside in Networks(np.arange(1, number + 1)).bins]
    assert len(sizes) == bins
    assert sum(sizes) == number
    assert max(sizes) - min(sizes) <= 1


def test_the_cheapest_that_cannot_be_told_from_the_best() -> None:
    draw = np.random.default_rng(2)
    truth = draw.normal(size=40)
    networks = Networks(FLOPS)
    noisy = {"best": 0.1, "nearly": 0.11, "half": 0.12, "worse": 2.0}
    costs = {"best": 0.9, "nearly": 0.5, "half": 0.5, "worse": 0.0}
    judged = {
        name: (costs[name], networks.judge([(truth + spread * draw.normal(size=40), truth)]))
        for name, spread in noisy.items()
    }
    best, cheapest = cheapest_as_good(judged)
    assert judged[best][1].within.value == max(j.within.value for _, j in judged.values())
    assert cheapest in ("nearly", "half")
    assert cheapest_as_good({"only": judged["worse"]}) == ("only", "only")


def test_what_cannot_be_told_from_size_is_no_advice() -> None:
    """Of 40 networks `little` cannot be told from `best`, and neither from the size."""
    draw = np.random.default_rng(0)
    truth = draw.normal(size=40)
    networks = Networks(FLOPS)
    noise = {"size": 20.0, "little": 2.0, "best": 0.8}
    judged = {
        name: (float(cost), networks.judge([(truth + spread * draw.normal(size=40), truth)]))
        for cost, (name, spread) in enumerate(noise.items())
    }
    assert cheapest_as_good(judged) == ("best", "little")
    assert cheapest_as_good(judged, ["size"]) == ("best", "best")


# Accel-NASBench's ablation of proxies (Apache-2.0), which lies outside the repository


def table(matched_by: slice) -> dict[str, Array]:
    """Top-1 of 3 short and 3 long seeds, and sizes, of the networks that all six files have."""
    roots = [root / "shared" / "tables" / "accel_seeds" for root in Path(__file__).parents]
    folder = next(filter(Path.is_dir, roots), None)
    if folder is None:
        pytest.skip("../shared/tables/accel_seeds is not here")
    files = {}
    for kind in ("short", "long"):
        for seed in (1, 2, 3):
            with (folder / f"{kind}_seed{seed}.csv").open() as lines:
                rows = list(csv.reader(lines))
            files[kind, seed] = {tuple(row[matched_by]): row for row in rows}
    common = sorted(set.intersection(*(set(rows) for rows in files.values())))

    def column(number: int, *of: tuple[str, int]) -> Array:
        return np.array([[float(files[one][key][number]) for key in common] for one in of])

    seeds = {kind: column(4, *((kind, seed) for seed in (1, 2, 3))) for kind in ("short", "long")}
    return seeds | {"flops": column(6, ("short", 1))[0], "params": column(7, ("short", 1))[0]}


def taus_of(found: dict[str, Array]) -> dict[str, tuple[float, float]]:
    """Tau overall and within quartiles of multiply-adds."""
    short, long = found["short"], found["long"]
    networks, truth = Networks(found["flops"]), long.mean(axis=0)
    judged = {
        "short": networks.judge([(short[0], truth)]),
        "long": networks.judge([(long[0], long[1:].mean(axis=0))]),
        "flops": networks.judge([(found["flops"], truth)]),
        "params": networks.judge([(found["params"], truth)]),
    }
    return {
        name: (round(one.overall.value, 3), round(one.within.value, 3))
        for name, one in judged.items()
    }


def test_published_trainings_matched_by_their_index() -> None:
    """Column 2 is an index that several networks of a file share. Matched by it, the last one of
    each file counts, so that some pairs are of two different networks."""
    found = table(slice(2, 3))
    assert len(found["flops"]) == 90
    assert taus_of(found) == {
        "short": (0.904, 0.891),
        "long": (0.958, 0.945),
        "flops": (0.514, 0.167),
        "params": (0.699, 0.635),
    }


def test_published_trainings_matched_by_their_networks() -> None:
    found = table(slice(9, None))
    assert len(found["flops"]) == 117
    assert taus_of(found) == {
        "short": (0.913, 0.869),
        "long": (0.957, 0.944),
        "flops": (0.512, 0.296),
        "params": (0.691, 0.63),
    }
