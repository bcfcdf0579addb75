"""What a table says of its networks."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.replay.made_up import TABLE, repeated


def test_the_front_is_of_networks_that_nothing_beats() -> None:
    """The diverged one has no accuracy, so it is on no front and has no part in the spread."""
    assert len(TABLE.complete) == len(TABLE.networks) - 1
    members = [network for network in TABLE.complete if network.proposal.key in TABLE.front]
    for one in members:
        assert not any(
            other.proposal.flops <= one.proposal.flops and other.top1 > one.top1
            for other in TABLE.complete
        )
    assert TABLE.worst == min(network.top1 for network in TABLE.complete)
    assert 0 < TABLE.spread < 10


def test_the_volume_of_one_network_is_its_rectangle() -> None:
    flops, top1 = TABLE.most_flops / 4, 80.0
    assert TABLE.volume([flops], [top1], 60.0) == pytest.approx(math.log(4) * 20)
    assert TABLE.volume([flops], [60.0], 60.0) == 0


def test_the_error_comes_from_the_number_of_images() -> None:
    """sqrt(p(1-p)/n) in points, as root mean square over the networks."""
    assert TABLE.standard_error is None
    known = replace(TABLE, made={"data": {"num_val_images": 400}})
    ends = [network.top1 / 100 for network in known.complete]
    variance = sum(p * (1 - p) for p in ends) / len(ends) / 400
    assert known.standard_error == pytest.approx(100 * math.sqrt(variance), rel=0.05)


def test_a_network_counts_with_the_mean_of_its_trainings() -> None:
    table = repeated(TABLE, (1.0, -4.0))
    for one, other in zip(table.complete, TABLE.complete, strict=True):
        assert one.top1 == pytest.approx(other.top1 - 1)
        assert len(one.scores) == 3
    assert table.front == TABLE.front
    assert TABLE.scatter is None
    assert table.scatter == pytest.approx(math.sqrt((1 + 4 + 9) / 2))


def test_each_training_of_a_network_is_some_search_s() -> None:
    table = repeated(TABLE, (1.0, 2.0))
    network = table.complete[0]
    assert {network.training_of(seed) for seed in range(40)} == set(network.trainings)
    assert network.training_of(3) == network.training_of(3)
    same_seed = [network.trainings.index(network.training_of(0)) for network in table.complete]
    assert set(same_seed) == {0, 1, 2}, "a seed is not the same training of every network"
