"""Recipes are tried on networks of all sizes and of many mixers."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.engine.conftest import make_space
from vitnas.config.space import load_space
from vitnas.cost.closed_form import closed_form
from vitnas.engine.tuning.networks import varied_networks
from vitnas.errors import ConfigError


def test_they_are_spread_over_flops_and_mixers() -> None:
    found = varied_networks(load_space("hybrid_fashion"), 4, 0)
    flops = [closed_form(config).flops for config in found]
    assert flops == sorted(flops)
    assert flops[-1] > 4 * flops[0]
    assert all(after > 1.2 * before for before, after in pairwise(flops))
    mixers = {stage.token_mixer for config in found for stage in config.stages}
    assert mixers == {"mbconv", "dwconv", "ska", "cska", "mhsa"}


def test_they_follow_from_the_seed() -> None:
    space = load_space("fashion_32")
    assert varied_networks(space, 3, 1) == varied_networks(space, 3, 1)
    assert varied_networks(space, 3, 1) != varied_networks(space, 3, 2)


def test_a_small_space_gives_all_that_it_has() -> None:
    assert len(varied_networks(load_space("ska_table5"), 100, 0)) == 7


def test_limits_that_no_network_meets_are_one_line() -> None:
    with pytest.raises(ConfigError, match=r"limits.flops.max = 1.0: no network"):
        varied_networks(make_space(limits={"flops": {"max": 1.0}}), 3, 0)
