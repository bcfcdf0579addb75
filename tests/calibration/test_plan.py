"""Which networks are trained, and how: from the space alone, the same in every call."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.engine.conftest import make_space
from vitnas.calibration.options import CalibrationOptions
from vitnas.calibration.plan import CalibrationPlan, make_plan
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.errors import ConfigError


def plan(**options: Any) -> CalibrationPlan:
    return make_plan(make_space(), CalibrationOptions(**{"networks": 6, **options}))


def test_networks_lie_evenly_over_log_flops_within_the_limits() -> None:
    space = make_space(limits={"flops": {"max": 300_000}})
    networks = make_plan(space, CalibrationOptions(networks=8)).networks
    flops = [network.flops for network in networks]
    assert flops == sorted(flops)
    assert len({network.config.key for network in networks}) == 8
    assert flops[-1] <= 300_000
    even = [math.log(flops[0]) + math.log(flops[-1] / flops[0]) * i / 7 for i in range(8)]
    assert max(abs(math.log(f) - goal) for f, goal in zip(flops, even, strict=True)) < 0.1


def test_the_same_call_asks_for_the_same_trainings() -> None:
    first, again = ([r.key for _, r in plan().requests()] for _ in range(2))
    assert first == again
    assert len(set(first)) == len(first) == 6 * (1 + len(plan().fidelities) + 2)
    seeds = [request.seed for _, request in plan().requests()]
    assert len(set(seeds)) == len(seeds), "a cheap training shares no noise with a long one"


def test_more_seeds_keep_the_trainings_of_fewer() -> None:
    few, more = ({r.key for _, r in plan(seeds=n).requests()} for n in (2, 3))
    assert few < more


def test_what_is_trained_for_less() -> None:
    found = {fidelity.name: fidelity for fidelity in plan(long_epochs=7).fidelities}
    assert list(found) == [
        *("proxy", "1 epoch", "half of the images"),
        *("images of 4 px", "half of the width", "half of the classes"),
    ]
    assert found["proxy"].proxy.epochs == 3
    assert found["1 epoch"].proxy.epochs == 1
    assert found["half of the images"].proxy.train_fraction == pytest.approx(0.15)
    network = plan().networks[0].config
    assert found["images of 4 px"].request(network).subject.image_hw == (4, 4)
    assert plan().image_sizes == ((8, 8), (4, 4))
    assert plan(long_epochs=7).long.epochs == 7
    assert plan().long.epochs == 9


def test_smaller_images_are_left_out_where_a_network_cannot_read_them() -> None:
    stage = {"token_mixer": "mhsa", "depth": {"int": [1, 8]}, "embed_dim": 16, "head_dim": 16}
    model = make_space().config.model | {"stages": [stage], "groups": "[16]", "img_size": 8}
    found = make_plan(make_space(model=model), CalibrationOptions(networks=4))
    assert not any("px" in fidelity.name for fidelity in found.fidelities)
    assert found.notices == ("smaller images: left out, not every network can read them",)


def test_half_of_the_width_is_in_whole_heads() -> None:
    found = {fidelity.name: fidelity for fidelity in plan().fidelities}["half of the width"]
    for network in plan().networks:
        half = found.request(network.config).subject
        assert isinstance(half, ModelConfig)
        for stage, whole in zip(half.stages, network.config.stages, strict=True):
            assert whole.embed_dim / 4 < stage.embed_dim < whole.embed_dim
            assert stage.embed_dim % stage.heads == 0
        assert closed_form(half).flops < 0.7 * network.flops


def test_half_of_the_classes_is_every_second_one() -> None:
    found = {fidelity.name: fidelity for fidelity in plan().fidelities}["half of the classes"]
    asked = [found.request(network.config) for network in plan().networks]
    assert {(one.subject.num_classes, one.some_classes) for one in asked} == {(5, True)}
    assert not any(one.some_classes for name, one in plan().requests() if "classes" not in name)


@pytest.mark.parametrize(
    ("data", "classes", "line"),
    [
        ({"classes": ["1", "2", "3"]}, 3, "there are fewer than four"),
        ({"folds": 2}, 10, "folds are of all images"),
    ],
)
def test_half_of_the_classes_is_left_out(data: dict[str, Any], classes: int, line: str) -> None:
    model = make_space().config.model | {"num_classes": classes}
    space = make_space(data={"name": "digits", **data}, model=model)
    found = make_plan(space, CalibrationOptions(networks=4))
    assert found.notices == (f"half of the classes: left out, {line}",)
    assert not any("classes" in fidelity.name for fidelity in found.fidelities)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"networks": 2}, "networks = 2: should be greater than or equal to 4 (nearest: 4)"),
        ({"seeds": 1}, "seeds = 1: should be greater than or equal to 2 (nearest: 2)"),
        (
            {"long_epochs": 3},
            "--long-epochs = 3: must be above the 3 epochs of the space's proxy (nearest: 4)",
        ),
        ({"networks": 500}, "--networks = 500: tiny has 126 networks within its limits (nearest:"),
    ],
)
def test_what_cannot_be_planned_is_one_line(options: dict[str, int], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(**options)
    assert str(caught.value).startswith(line)
