"""The replayed search: the real engine, nothing trained."""

from __future__ import annotations

import pytest

from tests.replay.made_up import TABLE, repeated, shifted
from vitnas.engine.pruning import DEFAULT_PRUNER
from vitnas.engine.samplers import DEFAULT_SAMPLER, SAMPLERS, SamplerName
from vitnas.replay.simulation import Trace, replay
from vitnas.replay.tables import find_table, shipped_tables


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("workers", [1, 5])
def test_a_whole_replay_trains_every_network_once(sampler: SamplerName, workers: int) -> None:
    trace = replay(TABLE, sampler, workers=workers)
    assert trace.started == len(TABLE.networks)
    assert len(trace.steps) == len(TABLE.complete)
    assert trace.epochs == 1.0
    assert trace.steps[-1].volume == pytest.approx(1.0)
    assert trace.steps[-1].strict == pytest.approx(1.0)
    volumes = [step.volume for step in trace.steps]
    assert volumes == sorted(volumes)


def test_a_replay_is_the_same_again_and_another_with_another_seed() -> None:
    first, again, other = (replay(TABLE, "ehvi", "both", seed=s, trials=20) for s in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_search_is_judged_by_means_and_not_by_its_own_scores() -> None:
    """A second training that is 20 points worse misleads a search, and no judge: random proposals
    find what they find where each network has one training, of the mean score."""
    both, means = repeated(TABLE, (-20.0,)), shifted(TABLE, -10.0)
    seen = {network.training_of(1).curve[-1] - network.top1 for network in both.complete}
    assert {round(points) for points in seen} == {-10, 10}
    judged, expected = (replay(table, "random", seed=1).steps for table in (both, means))
    assert [s.strict for s in judged] == pytest.approx([s.strict for s in expected])
    assert [s.volume for s in judged] == pytest.approx([s.volume for s in expected])


def test_workers_divide_the_time_and_not_the_epochs() -> None:
    alone, five = (replay(TABLE, "random", workers=n) for n in (1, 5))
    assert alone.seconds == pytest.approx(sum(n.trainings[0].seconds for n in TABLE.networks))
    assert alone.seconds / 5 <= five.seconds < alone.seconds / 4


def test_pruning_spends_less_and_counts_what_it_lost() -> None:
    trace = replay(TABLE, "random", "front")
    assert trace.epochs < 1.0
    assert trace.stopped
    assert trace.lost == len(TABLE.front & set(trace.stopped))
    complete = len(trace.steps)
    assert complete + len(trace.stopped) + 1 == trace.started


def test_reach_and_at_read_the_steps() -> None:
    trace = replay(TABLE, "random")
    first = next(step for step in trace.steps if step.volume >= 0.9)
    assert trace.reach(0.9, "volume", "trials") == first.trials
    assert trace.reach(0.9, "volume", "epochs") == first.epochs
    assert trace.at(first.epochs, "volume") == first.volume
    assert trace.at(0.0, "volume") == 0.0
    assert Trace((), (), 0, 0, 0.0, 0.0).reach(0.5, "strict", "trials") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(shipped_tables()))
def test_the_default_is_not_below_random(name: str) -> None:
    """Up to a tenth of the epochs, by either measure, mean of twenty seeds."""
    table = find_table(name)
    trials = len(table.networks) // 6
    ours, theirs = (
        [replay(table, sampler, pruner, seed=seed, trials=trials) for seed in range(20)]
        for sampler, pruner in ((DEFAULT_SAMPLER, DEFAULT_PRUNER), ("random", "none"))
    )
    for of in ("volume", "strict"):
        for share in (0.02, 0.05, 0.1):
            found, drawn = (sum(t.at(share, of) for t in traces) for traces in (ours, theirs))
            assert found > drawn, (of, share)
