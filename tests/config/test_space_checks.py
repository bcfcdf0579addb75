"""Checks of a tree with searched values; the lines they end in are in test_space_mistakes."""

from __future__ import annotations

import pytest

from tests.config.trees import BASE
from vitnas.config.space_checks import (
    check_inherited,
    check_schedules,
    check_values,
    template_of,
)
from vitnas.errors import ConfigError

PART = {"stages": [{"depth": {"int": [1, 2]}}, {}]}


def test_a_part_of_a_model_need_not_have_all_fields() -> None:
    check_values(template_of(PART), are_all=False)
    with pytest.raises(ConfigError, match="is required"):
        check_values(template_of(PART))


def test_each_option_of_a_part_is_checked() -> None:
    part = {"stages": [{}, {"depth": {"choice": [1, "two"]}}]}
    with pytest.raises(ConfigError, match=r"^stages\[1\]\.depth = 'two': should be a whole number"):
        check_values(template_of(part), are_all=False)


def test_rules_across_fields_are_left_to_the_draws() -> None:
    part = {"stages": [{"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 3}]}
    check_values(template_of(part), are_all=False)
    check_values(template_of(BASE | part))


def test_brackets_are_counted_where_the_stages_are_known() -> None:
    check_schedules(template_of({"groups": "[1][1]"}))
    with pytest.raises(ConfigError, match="2 brackets for 1 stages"):
        check_schedules(template_of(BASE | {"groups": "[1][1]"}))


def test_axes_of_one_name_offer_the_same() -> None:
    tied = [{"depth": {"int": [1, top], "name": "d"}} for top in (2, 3)]
    with pytest.raises(ConfigError, match="must offer what"):
        template_of({"stages": tied})


def test_null_is_refused_only_beside_what_it_may_stand_for() -> None:
    stages = [{"norm": {"choice": [None, "batchnorm"]}}]
    check_inherited(template_of({"norm": "batchnorm", "stages": stages}), "norm")
    several = {"norm": {"choice": ["layernorm", "batchnorm"]}, "stages": stages}
    with pytest.raises(ConfigError, match="null means the network's `norm`"):
        check_inherited(template_of(several), "norm")
