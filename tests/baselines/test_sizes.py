"""Which reference networks a space is compared with."""

from __future__ import annotations

from math import log

import pytest
import torch

from tests.engine.conftest import make_space
from vitnas.baselines.families import FAMILIES
from vitnas.baselines.sizes import Lineup, line_up, price, targets
from vitnas.config.baseline import LIKE_FLOPS
from vitnas.config.space import load_space
from vitnas.cost.survey import flops_range, survey


def test_the_targets_lie_evenly_by_log() -> None:
    assert targets(1000, 1_000_000) == pytest.approx([1e3, 1e4, 1e5, 1e6])
    assert targets(7, 7) == [7]


@pytest.mark.slow
def test_members_are_near_the_targets_and_the_same_each_time() -> None:
    space = make_space()
    state = torch.get_rng_state()
    lineup = line_up(space, 8)
    assert torch.equal(torch.get_rng_state(), state)
    assert {member.baseline.family for member in lineup.members} == set(list(FAMILIES)[:2])
    goals = targets(*flops_range(space))
    for member in lineup.members:
        assert min(abs(log(member.flops / goal)) for goal in goals) <= log(LIKE_FLOPS)
        assert member == price(member.baseline)
    assert line_up(space, 8) == lineup


@pytest.mark.slow
def test_the_targets_reach_the_ends_that_a_search_finds() -> None:
    """500 random networks of this space begin at twice the FLOPs of its cheapest one."""
    space = load_space("fashion_32")
    assert flops_range(space) == survey(space, draws=500).flops


def test_few_trials_get_one_family_and_none_gets_none() -> None:
    lineup = line_up(make_space(), 1)
    assert {member.baseline.family for member in lineup.members} == {"vgg"}
    assert line_up(make_space(), 0) == Lineup((), ())


@pytest.mark.slow
def test_what_cannot_be_scaled_is_left_out_with_a_notice() -> None:
    space = make_space()
    lineup = line_up(space, 4 * len(FAMILIES))
    assert lineup.notices
    for family in FAMILIES:
        sizes = sum(member.baseline.family == family for member in lineup.members)
        told = any(f"{family} at " in notice for notice in lineup.notices)
        assert told == (sizes < 4), family


def test_limits_that_leave_no_baseline_are_one_line() -> None:
    limits = {"flops": {"max": 70e3}, "num_params": {"max": 2400}}
    lineup = line_up(make_space(limits=limits), 4)
    assert not lineup.members
    (line,) = lineup.notices
    assert line.startswith("no baselines: ")


def test_a_member_that_the_memory_cannot_hold_is_left_out() -> None:
    """At 10^16 FLOPs a plain CNN for 8 pixels has terabytes of weights."""
    stage = {"token_mixer": "pool", "embed_dim": 1_000_000, "depth": 20_000}
    model = make_space().example.to_tree() | {"groups": "[1]", "stages": [stage]}
    assert line_up(make_space(model=model), 4).members == ()
