"""Early stopping for two and more objectives: the front always lives, decisions are pure."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vitnas.engine.pruning.pareto import (
    FrontRank,
    OptimisticEnd,
    ParetoPruner,
    default_rungs,
    like_first,
    make_pruner,
)
from vitnas.records import Outcome, TrialRecord

EPOCHS = 6
curves = st.lists(st.integers(0, 40).map(lambda n: 2.5 * n), min_size=EPOCHS, max_size=EPOCHS)
RULES = (FrontRank((1, 2, 3), bins=2), OptimisticEnd(0.8))
PRUNER = ParetoPruner(RULES)
THREE = ParetoPruner(RULES, costs=("flops", "num_params"))


def record(
    number: int, flops: int, curve: list[float], epochs: int = EPOCHS, num_params: int = 1
) -> TrialRecord:
    outcome = Outcome.COMPLETE if epochs == EPOCHS else Outcome.RUNNING
    cut = tuple(curve[:epochs])
    return TrialRecord(number, outcome=outcome, flops=flops, num_params=num_params, curve=cut)


@st.composite
def runs(draw: st.DrawFn) -> tuple[TrialRecord, list[TrialRecord]]:
    """A trial after one to five epochs, and the other trials of its run."""
    count = draw(st.integers(5, 24))
    flops, params = (
        draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)) for _ in "ab"
    )
    trials = [
        record(i, flops[i], draw(curves), draw(st.sampled_from([1, 3, 6, 6, 6])), params[i])
        for i in range(count)
    ]
    here = record(0, flops[0], draw(curves), draw(st.integers(1, 5)), params[0])
    return here, trials[1:]


def objectives(trial: TrialRecord, epoch: int, three: bool) -> tuple[float, ...]:
    costs = (trial.flops, trial.num_params) if three else (trial.flops,)
    return (-max(trial.curve[:epoch]), *costs)


def dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


@pytest.mark.slow
@pytest.mark.parametrize("pruner", [PRUNER, THREE], ids=["two", "three"])
@settings(max_examples=40)
@given(run=runs())
def test_a_trial_on_the_front_of_its_epoch_is_never_stopped(
    pruner: ParetoPruner, run: tuple[TrialRecord, list[TrialRecord]]
) -> None:
    trial, others = run
    three = len(pruner.costs) == 2
    mine = objectives(trial, trial.epochs, three)
    peers = [t for t in others if t.epochs >= trial.epochs]
    assume(not any(dominates(objectives(t, trial.epochs, three), mine) for t in peers))
    assert not pruner.should_stop(trial, others)


@settings(max_examples=30)
@given(st.lists(runs(), min_size=2, max_size=3))
def test_what_was_asked_before_does_not_matter(
    asked: list[tuple[TrialRecord, list[TrialRecord]]],
) -> None:
    fresh = [OptimisticEnd(0.8).stops(*run, ("flops",)) for run in asked]
    rule = OptimisticEnd(0.8)
    assert [rule.stops(*run, ("flops",)) for run in (*asked, *asked)] == fresh + fresh


@settings(max_examples=50)
@given(runs(), st.integers(0, 1 << 20))
def test_the_order_of_the_others_does_not_matter(
    run: tuple[TrialRecord, list[TrialRecord]], seed: int
) -> None:
    trial, others = run
    shuffled = others[:]
    random.Random(seed).shuffle(shuffled)
    assert PRUNER.should_stop(trial, others) == PRUNER.should_stop(trial, shuffled)


@pytest.mark.slow
@given(runs())
def test_equal_trials_get_equal_decisions(run: tuple[TrialRecord, list[TrialRecord]]) -> None:
    """Whoever of two equal trials reports first, the other one sees the same."""
    trial, others = run
    twin = replace(trial, number=99)
    assert PRUNER.should_stop(trial, [*others, twin]) == PRUNER.should_stop(twin, [*others, trial])


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 50), curves), min_size=8, max_size=30))
def test_at_least_the_kept_share_of_every_bin_goes_on(pairs: list[tuple[int, list[float]]]) -> None:
    trials = [record(i, flops, curve, 2) for i, (flops, curve) in enumerate(pairs)]
    rule = FrontRank((2,), keep=0.5, bins=2)
    stopped = {
        t.number for t in trials if rule.stops(t, [o for o in trials if o is not t], ("flops",))
    }
    for trial in trials:
        others = [o for o in trials if o is not trial]
        costs = np.array([float(t.flops) for t in (trial, *others)])
        same = like_first(costs, 2, rule.min_peers)
        members = [t for t, here in zip((trial, *others), same, strict=True) if here]
        assert sum(t.number in stopped for t in members) <= len(members) / 2


@pytest.mark.slow
@given(runs())
def test_without_rules_nothing_is_stopped(run: tuple[TrialRecord, list[TrialRecord]]) -> None:
    trial, others = run
    assert not ParetoPruner(()).should_stop(trial, others)
    assert not ParetoPruner((FrontRank(()),)).should_stop(trial, others)


def rising(end: float) -> list[float]:
    return [end - 10 * (EPOCHS - epoch) for epoch in range(1, EPOCHS + 1)]


def test_the_worst_at_a_rung_stops_and_few_are_not_judged() -> None:
    pruner = ParetoPruner((FrontRank((2,)),))
    good = [record(i, 100 * i, rising(90.0 + i), 2) for i in range(1, 7)]
    bad = record(9, 700, rising(65.0), 2)
    assert pruner.should_stop(bad, good)
    assert not pruner.should_stop(bad, good[:3])
    assert not pruner.should_stop(replace(bad, flops=50), good)
    assert not pruner.should_stop(replace(bad, curve=(*bad.curve, 50.0)), good)


def test_bins_keep_the_costly_end_from_starving() -> None:
    """Many cheap networks on the first front push the costly ones behind half of all."""
    cheap = [record(i, 10 + i, rising(60.0 + i), 2) for i in range(1, 9)]
    costly = [record(i, 1000 + i, rising(67.0 - (i % 3)), 2) for i in range(10, 15)]
    here = record(20, 1000, rising(67.5), 2)
    together, apart = (ParetoPruner((FrontRank((2,), bins=bins),)) for bins in (1, 2))
    assert together.should_stop(here, [*cheap, *costly])
    assert not apart.should_stop(here, [*cheap, *costly])


def finished(count: int, seed: int = 0) -> list[TrialRecord]:
    """Trainings that end 10 percent above their first epoch, give or take a little."""
    draw = random.Random(seed)
    trials = []
    for number in range(count):
        start = draw.uniform(50, 70)
        ends = [start + 2 * epoch + draw.gauss(0, 0.5) for epoch in range(EPOCHS)]
        trials.append(record(number, draw.randrange(1000, 2000), ends))
    return trials


def test_what_cannot_reach_the_front_stops_and_what_may_goes_on() -> None:
    others = finished(40)
    best = max(t.curve[-1] for t in others)
    pruner = ParetoPruner((OptimisticEnd(0.9),))
    hopeless, hopeful = (record(99, 5000, [best - gap] * 3, 3) for gap in (20.0, 7.0))
    assert pruner.should_stop(hopeless, others)
    assert not pruner.should_stop(hopeful, others)


def test_a_high_confidence_needs_many_finished_curves() -> None:
    """19 for 0.95: with fewer no rank of the residuals is that sure."""
    hopeless = record(99, 5000, [5.0] * 3, 3)
    rule = OptimisticEnd(0.95)
    assert not rule.stops(hopeless, finished(18), ("flops",))
    assert rule.stops(hopeless, finished(19), ("flops",))


@pytest.mark.parametrize(
    ("epochs", "rungs"), [(12, (2, 5)), (1, ()), (3, ()), (4, (1, 2)), (300, (50, 125))]
)
def test_rungs_scale_with_the_training(epochs: int, rungs: tuple[int, ...]) -> None:
    assert default_rungs(epochs) == rungs


def test_pruners_by_name() -> None:
    assert make_pruner("none", 10) is None
    both = make_pruner("both", 10, 0.9)
    assert both is not None
    assert [type(rule) for rule in both.rules] == [FrontRank, OptimisticEnd]
    assert both.rules[1] == OptimisticEnd(0.9)
