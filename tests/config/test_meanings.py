"""Values that mean the same are one network, and are offered once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config.test_golden import Questions
from tests.config.trees import BASE, space_of, stage
from vitnas.config.model import ModelConfig


def test_options_that_say_the_same_are_offered_once() -> None:
    space = space_of({"stages": [stage(residual={"choice": [None, "plain", "lrc"]})]})
    assert [config.key for config in space.networks()] == list(
        dict.fromkeys(config.key for config in space.networks())
    )
    trial = Questions(0)
    space.suggest(trial)
    assert [question[:2] for question in trial.asked] == [["stages[0].residual@0,2", [None, "lrc"]]]


DEEP = {"token_mixer": {"pattern": ["dwconv", "mhsa"]}, "depth": 4, "embed_dim": 32}


@pytest.mark.parametrize(
    ("one", "same", "another"),
    [
        ({"img_size": 8}, {"img_size": [8, 8]}, {"img_size": [8, 16]}),
        (
            {"stem": {"kind": "conv", "stride": 2, "convs": 2}},
            {"stem": {"kind": "conv", "stride": 2, "convs": 2, "widths": [16]}},
            {"stem": {"kind": "conv", "stride": 2, "convs": 2, "widths": [12]}},
        ),
        (
            {"temperature": {"kind": "linear"}},
            {"temperature": {"kind": "none"}},
            {"temperature": {"kind": "learnable"}},
        ),
        (
            {"stages": [stage(depth=1)], "residual": "lrc"},
            {"stages": [stage(depth=1, residual="lrc")]},
            {"stages": [stage(depth=1)]},
        ),
        (
            {"stages": [DEEP]},
            {"stages": [{**DEEP, "token_mixer": {"pattern": ["dwconv", "mhsa"] * 2}}]},
            {"stages": [{**DEEP, "token_mixer": {"pattern": ["mhsa", "dwconv"]}}]},
        ),
    ],
    ids=["sides", "stem widths", "temperature", "residual", "pattern"],
)
def test_spellings_that_mean_the_same_are_one_network(
    one: dict[str, Any], same: dict[str, Any], another: dict[str, Any]
) -> None:
    key, again, other = (
        ModelConfig.model_validate(BASE | changes).key for changes in (one, same, another)
    )
    assert key == again
    assert key != other
