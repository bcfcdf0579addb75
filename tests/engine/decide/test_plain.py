"""Networks that are alike in all stages."""

from __future__ import annotations

from itertools import pairwise
from math import log

import pytest

from tests.engine.conftest import make_space
from vitnas.config.space import load_space
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.engine.decide.plain import plain_networks
from vitnas.engine.decide.warm_start import seed_candidates


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "fashion_32", "hybrid_cifar"])
def test_plain_networks_are_alike_in_all_stages_and_cover_the_sizes(name: str) -> None:
    space = load_space(name)
    found = plain_networks(space)
    assert len(found) == len({config.key for config in found}) == 8
    flops = [closed_form(config).flops for config in found]
    assert flops == sorted(flops)
    assert log(flops[-1] / flops[0]) > 1.5
    for config in found:
        assert over_limits(closed_form(config), space.config.limits) is None
        for before, after in pairwise(config.stages):
            assert before.embed_dim <= after.embed_dim
            if before.token_mixer == after.token_mixer == "mbconv":
                assert before.se_ratio == after.se_ratio
                assert before.expansion == after.expansion


def test_mixers_take_turns() -> None:
    mixers = [config.stages[0].token_mixer for config in plain_networks(load_space("digits"))]
    assert all(mixers.count(one) >= 2 for one in set(mixers))
    assert len(set(mixers)) == 4


@pytest.mark.slow
def test_a_stage_of_two_mixers_is_not_plain() -> None:
    """`(cska, last 1 mhsa)` in all stages had counted as one mixer, before `dwconv` alone."""
    for config in plain_networks(load_space("papers_32")):
        assert len({kind for stage in config.stages for kind in stage.kinds}) == 1


@pytest.mark.slow
def test_a_search_can_train_them_first() -> None:
    space = load_space("fashion_32")
    found, misfits = seed_candidates(space, ["plain"])
    assert [one.origin for one in found] == ["plain"] * 8
    assert not misfits
    assert [one.key for one in found] == [config.key for config in plain_networks(space)]


def test_a_space_without_any_within_its_limits_has_none() -> None:
    assert plain_networks(make_space(limits={"flops": {"max": 10}})) == ()
