"""Recipes are tried on networks of all sizes and of many mixers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.engine.conftest import make_space
from tests.report.runs import run_of, tree, trial
from vitnas.config.space import load_space
from vitnas.cost.closed_form import closed_form
from vitnas.engine.tuning.networks import front_networks, varied_networks
from vitnas.errors import ConfigError, RunError
from vitnas.run import Run


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


def test_networks_that_the_space_names_come_first() -> None:
    """What a search chooses is like them; networks at random may want another recipe."""
    space = load_space("images_64")
    named = [space.seed_network(index) for index in range(len(space.config.seed_configs))]
    for number in (1, 2, 4):
        found = varied_networks(space, number, 0)
        assert len(found) == number
        assert {config.key for config in found} <= {config.key for config in named}
        flops = [closed_form(config).flops for config in found]
        assert flops == sorted(flops)
    assert flops[-1] > 8 * flops[0]


def test_without_enough_named_networks_within_the_limits_all_are_random() -> None:
    space = load_space("images_64")
    most = len(space.config.seed_configs)
    found = varied_networks(space, most + 1, 0)
    assert len(found) == most + 1
    named = {space.seed_network(index).key for index in range(most)}
    assert len({config.key for config in found} & named) < 3


def test_limits_that_no_network_meets_are_one_line() -> None:
    with pytest.raises(ConfigError, match=r"limits.flops.max = 1.0: no network"):
        varied_networks(make_space(limits={"flops": {"max": 1.0}}), 3, 0)


def run_of_front(*flops: int, size: int = 32) -> Run:
    """Each network is more accurate than all cheaper ones; its depth is its place."""
    trials = (
        trial(n, 50.0 + n, cost, config=tree("mhsa", depth=n + 1) | {"img_size": size})
        for n, cost in enumerate(flops)
    )
    return run_of(Path("results/run"), *trials)


def test_a_front_gives_networks_evenly_over_its_flops() -> None:
    space, run = load_space("hybrid_cifar"), run_of_front(10**5, 10**6, 2 * 10**6, 10**7, 10**9)
    depths = [[one.stages[0].depth for one in front_networks(space, run, n)] for n in range(1, 7)]
    assert depths[1:] == [[1, 5], [1, 4, 5], [1, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]
    assert run.knee is not None
    assert depths[0] == [run.knee.network.stages[0].depth]


def test_a_run_without_a_front_for_these_images_is_one_line() -> None:
    space = load_space("hybrid_cifar")
    with pytest.raises(RunError, match=r"results/run: --front-of: no trial is complete yet"):
        front_networks(space, run_of_front(), 3)
    rule = (
        r"its networks are for 64 x 64 px, 3 channels, 10 classes, those of the space "
        r"hybrid_cifar for 32 x 32 px, 3 channels, 10 classes$"
    )
    with pytest.raises(RunError, match=rf"^results/run: --front-of: {rule}"):
        front_networks(space, run_of_front(10**5, size=64), 3)
