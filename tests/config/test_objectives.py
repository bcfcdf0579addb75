"""Objectives and limits: which there may be, in what order, and what is measured for them."""

from __future__ import annotations

from typing import Any

import pytest

from vitnas.config.files import validate
from vitnas.config.space import SpaceConfig
from vitnas.errors import ConfigError


@pytest.mark.parametrize(
    ("part", "given", "line"),
    [
        ("objectives", {"latency": "minimize"}, "objectives.latency = 'minimize': unknown key"),
        ("objectives", {"flops": "maximize"}, "objectives.flops = 'maximize': should be"),
        ("objectives", {"flops": None}, "objectives: need a cost beside top1: flops, num_params,"),
        ("objectives", {"top1_int8": "maximize"}, "objectives.top1_int8 = 'maximize': stands in"),
        ("limits", {"top1": {"min": 90.0}}, "limits.top1 = {min: 90.0}: is known after"),
        ("limits", {"top1_int8": {"min": 90.0}}, "limits.top1_int8 = {min: 90.0}: is known after"),
        ("limits", {"latency": {"max": 1.0}}, "limits.latency = {max: 1.0}: unknown key"),
    ],
)  # fmt: skip
def test_objectives_and_limits_that_cannot_be(part: str, given: dict[str, Any], line: str) -> None:
    tree = {"name": "x", "model": {}, part: given}
    if part == "objectives":
        tree[part] = {"top1": "maximize", **given}
    with pytest.raises(ConfigError) as caught:
        validate(SpaceConfig, tree)
    assert str(caught.value).startswith(line)


def test_top1_has_to_be_an_objective() -> None:
    tree = {"name": "x", "model": {}, "objectives": {"flops": "minimize"}}
    with pytest.raises(ConfigError, match=r"objectives\.top1: is required"):
        validate(SpaceConfig, tree)


def test_top1_in_int8_stands_in_its_place() -> None:
    pair = {"top1_int8": "maximize", "num_params": "minimize"}
    config = validate(SpaceConfig, {"name": "x", "model": {}, "objectives": pair})
    assert config.objectives.is_int8
    assert config.model_dump(mode="json")["objectives"] == pair
    alone = {"name": "x", "model": {}, "objectives": {"top1_int8": "maximize"}}
    with pytest.raises(ConfigError, match="need a cost beside top1_int8: flops,"):
        validate(SpaceConfig, alone)


def test_the_order_of_objectives_means_nothing() -> None:
    """Stored values have one order, so that a resumed run cannot mix them up."""
    pairs = {"latency_ms": "minimize", "top1": "maximize", "flops": "minimize"}
    config = validate(SpaceConfig, {"name": "x", "model": {}, "objectives": pairs})
    assert config.objectives.costs == ("flops", "latency_ms")
    assert config.model_dump(mode="json")["objectives"] == pairs
    assert config.measured == ("latency_ms",)


def test_what_a_file_says_of_objectives_by_default() -> None:
    config = validate(SpaceConfig, {"name": "x", "model": {}})
    assert config.model_dump(mode="json")["objectives"] == {"top1": "maximize", "flops": "minimize"}
    assert not config.measured
    limited = validate(
        SpaceConfig, {"name": "x", "model": {}, "limits": {"latency_ms": {"max": 2.0}}}
    )
    assert limited.measured == ("latency_ms",)
