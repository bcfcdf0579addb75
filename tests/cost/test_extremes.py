"""The ends that climbing finds are the true ones where all networks can be listed."""

from __future__ import annotations

from tests.config.trees import space_of, stage
from tests.cost.spaces import SMALL
from vitnas.cost.closed_form import closed_form
from vitnas.cost.extremes import extremes
from vitnas.cost.survey import survey


def test_climbing_finds_the_true_ends_of_a_space() -> None:
    space = space_of(SMALL)
    costs = [closed_form(config) for config in space.networks()]
    flops = [cost.flops for cost in costs]
    params = [cost.num_params for cost in costs]
    assert extremes(space, "flops") == (min(flops), max(flops))
    assert extremes(space, "num_params") == (min(params), max(params))


def test_climbing_keeps_within_the_limits() -> None:
    space = space_of(SMALL, limits={"flops": {"min": 1.0e5, "max": 1.0e6}})
    found = extremes(space, "flops")
    assert found is not None
    assert 1e5 <= found[0] < 2e5
    assert 8e5 < found[1] <= 1e6


def test_the_ends_of_a_continuous_range_are_found_also_where_it_is_not_always_asked() -> None:
    expansion = {"float": [1.0, 4.0]}
    space = space_of(
        {
            "downsample": {"choice": ["separable", "mbconv"]},
            "downsample_expansion": expansion,
            "stages": [stage(), stage()],
        }
    )
    fixed = [{"downsample": kind, "stages": [stage(), stage()]} for kind in ("separable", "mbconv")]
    ends = [closed_form(next(space_of(each).networks())).flops for each in fixed]
    assert extremes(space, "flops") == tuple(ends)
    assert survey(space, draws=50).flops == tuple(ends)
