"""The sentences on how far a ranking can be trusted, against runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.runs import ENVIRONMENT, SPACE, reference, run_of, trial
from vitnas.records import BaselineRecord, Outcome
from vitnas.report.caveats import sentences
from vitnas.report.trust import assess

PATH = Path("results/small")


def said(*trials: Any, **more: Any) -> str:
    return "\n".join(sentences(assess(run_of(PATH, *trials, **more))))


def test_sentences_carry_their_numbers() -> None:
    trials = [trial(n, 50.0 + 5 * n, 10 ** (n + 4), test_top1=50.0 + 4 * n) for n in range(4)]
    text = said(*trials, trial(9, 1.0, outcome=Outcome.STOPPED))
    for part in (
        "5,000 images: one standard error is 0.70 points",
        "3 pairs of neighbours on the front, 0 are expected to differ",
        "over 4 complete trials",
        "So few trials make these taus rough",
        "1 trial was stopped early",
        "Scoring minus test top-1 is +1.50 points on average",
        "one seed",
    ):
        assert part in text, part


def test_one_pair_of_neighbours_is_no_plural() -> None:
    text = said(trial(0, 50.0), trial(1, 50.1, 10**7), trial(2, 60.0, 10**8))
    assert "Of 2 pairs of neighbours on the front, 1 is expected to differ" in text


def test_replicates_tell_how_sure_the_order_of_neighbours_is() -> None:
    once = [trial(n, 50.0 + n, 10 ** (n + 4)) for n in range(3)]
    again = [replace(one, replicates=(50.0 + one.number,)) for one in once]
    assert "true order" not in said(*once)
    assert "Two neighbours are in the true order with a probability of 0.9" in said(*again)


def test_top1_in_int8_is_told_with_what_int8_costs() -> None:
    trials = [trial(n, 50.0 + n, 10 ** (n + 4), float_top1=51.0 + n) for n in range(3)]
    assert "top-1 in int8 minus that in float is −1.00 points on average" in said(*trials)
    assert "int8" not in said(trial(0))


def baselines_at(*rates: float) -> tuple[BaselineRecord, ...]:
    """A family each, the most accurate one first; of three rates that were tried one was chosen."""
    tried = tuple((lr, 50.0) for lr in (0.004, 0.008, 0.016))
    facts: dict[str, Any] = {"outcome": Outcome.COMPLETE, "rates": tried}
    return tuple(
        BaselineRecord(network=reference(family), lr=lr, curve=(top1,), **facts)
        for family, lr, top1 in zip("abcde", rates, (60.0, 50.0, 40.0, 30.0, 20.0), strict=False)
    )


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((0.016, 0.032, 0.016), r"3 of 3 families .* higher learning rate \(0.016 to 0.032\) than"),
        ((0.016,) * 4, r"4 of 4 families .* \(0.016\) than the trials have \(0.008\)\. .* too low"),
        ((0.004, 0.002, 0.004), r"a lower learning rate \(0.002 to 0.004\) .* too high for"),
        ((0.016, 0.032, 0.008, 0.032, 0.004), r"3 of 5 families .* higher"),
        ((0.016, 0.032), None),
        ((0.016, 0.032, 0.008), None),
        ((0.008, 0.016, 0.016, 0.016), None),
        ((0.004, 0.016, 0.016, 0.016), None),
        ((0.016, 0.016, 0.016, 0.004, 0.004), r"3 of 5 families .* higher"),
        ((0.016, 0.016, 0.008, 0.004, 0.004), None),
    ],
)
def test_families_of_baselines_tell_that_the_learning_rate_is_wrong(
    rates: tuple[float, ...], expected: str | None
) -> None:
    space = {**SPACE, "proxy": {"lr": 0.008}}
    text = said(trial(0), space=space, baselines=baselines_at(*rates))
    assert bool(re.search(expected or "families of baselines", text)) == (expected is not None)
    assert "families of baselines" not in said(trial(0), baselines=baselines_at(*rates))


@pytest.mark.parametrize(
    ("rates", "named"), [((0.016, 0.016, 0.032), 0.016), ((0.002, 0.004, 0.004), 0.004)]
)
def test_the_next_rate_to_search_at_is_named(rates: tuple[float, ...], named: float) -> None:
    space = {**SPACE, "proxy": {"lr": 0.008}}
    text = said(trial(0), space=space, baselines=baselines_at(*rates))
    assert f"a search with another one (`--lr {named:g}`) may find a better front" in text
    more = {"space": space, "baselines": baselines_at(*rates)}
    tuned = said(trial(0), environment={**ENVIRONMENT, "tuned": "lr 0.008"}, **more)
    assert "a search with another one may find a better front" in tuned


def test_a_family_s_rate_is_the_middle_one_of_its_members() -> None:
    space = {**SPACE, "proxy": {"lr": 0.008}}
    family = [baselines_at(rate)[0] for rate in (0.008, 0.032, 0.016)]
    found = assess(run_of(PATH, trial(0), space=space, baselines=tuple(family)))
    assert found.rate_factors == (2.0,)


def test_a_starved_range_of_flops_is_named() -> None:
    trials = [trial(n, 50.0 + n, 10**6 + n) for n in range(16)]
    costly = [trial(20 + n, 40.0, 10**8 + n, outcome=Outcome.STOPPED) for n in range(8)]
    run = run_of(PATH, *trials, *costly)
    assert [(row.started, row.stopped) for row in assess(run).starved] == [(8, 8)]
    text = said(*trials, *costly)
    assert "100 M FLOPs 8 trainings started and none was finished" in text
    assert "none was finished" not in said(*trials, *costly, trial(40, 60.0, 10**8))


def test_sentences_say_what_is_not_known() -> None:
    assert "no ranking to trust" in said()
    text = said(trial(0), environment={})
    assert "does not say on how many images" in text
    assert "1 complete trial cannot show" in text
    assert "No front member has a test top-1" in text


@pytest.mark.slow
def test_thinned_runs_say_so() -> None:
    curves = np.random.default_rng(0).random((3200, 3)).cumsum(axis=1).tolist()
    trials = [trial(n, curve=tuple(curve)) for n, curve in enumerate(curves)]
    assert "over 1,067 of 3,200 complete trials, evenly chosen" in said(*trials)
    assert ENVIRONMENT["data"]["num_val_images"] == 5000  # what the numbers above rest on
