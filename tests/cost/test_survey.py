"""What `vitnas space` counts is true where it can be checked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config.trees import space_of, stage
from tests.cost.spaces import SMALL
from vitnas.config.space import load_space
from vitnas.cost.closed_form import closed_form
from vitnas.cost.survey import check_limits, estimate_size, survey
from vitnas.errors import ConfigError


def test_a_small_space_is_counted_exactly() -> None:
    space = space_of(SMALL)
    costs = {config.key: closed_form(config) for config in space.networks()}
    found = survey(space)
    assert (found.num_networks, found.error) == (len(costs), 0.0)
    flops = [cost.flops for cost in costs.values()]
    assert found.flops == (min(flops), max(flops))
    assert found.within == 1.0
    assert len(found.samples) == 5


def test_the_estimate_is_near_the_true_number() -> None:
    space = space_of(SMALL)
    true = sum(1 for _ in space.networks())
    estimate, error = estimate_size(space, probes=2000)
    assert abs(estimate - true) < 4 * error * estimate


@pytest.mark.slow
def test_a_large_space_is_estimated() -> None:
    found = survey(load_space("hybrid_fashion"), draws=200)
    assert 4e6 < found.num_networks < 9e6
    assert 0 < found.error < 0.2
    assert found.flops[1] / found.flops[0] > 20


def test_continuous_axes_have_no_number() -> None:
    space = space_of({"stages": [stage(mlp_ratio={"float": [1.0, 2.0]})]})
    found = survey(space, draws=50)
    assert found.num_networks == float("inf")
    assert found.flops[0] < found.flops[1]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"flops": {"max": 10.0}}, r"s\.yaml: limits\.flops\.max = 10\.0: no network of"),
        ({"num_params": {"min": 1.0e9}}, r"limits\.num_params\.min = 1000000000\.0: no network of"),
    ],
)
def test_limits_that_nothing_meets(limits: dict[str, Any], expected: str) -> None:
    space = space_of(SMALL, limits=limits)
    for check in (check_limits, survey):
        with pytest.raises(ConfigError, match=expected) as caught:
            check(space)
        assert "nearest: " in str(caught.value)


def test_narrow_limits_are_named_as_a_problem() -> None:
    space = space_of(SMALL, limits={"flops": {"max": 6.0e4}})
    (problem,) = survey(space).problems
    assert "of the networks meet the limits" in problem


@pytest.mark.slow
def test_refused_draws_are_named_as_a_problem() -> None:
    gamma = {"broad": {"gamma": 0.5}}
    (problem,) = survey(space_of(SMALL | gamma)).problems
    assert problem == "model.stages[0].token_mixer: 'dwconv' never came up"
    wide = SMALL | gamma | {"stages": SMALL["stages"] * 3, "groups": "[1,1][1,1][1,1]"}
    wide |= {"stem": {"kind": "conv", "stride": 1}}
    assert "of draws break a rule" in survey(space_of(wide), draws=300).problems[0]
