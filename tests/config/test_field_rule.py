"""What a field's rule says of values."""

from __future__ import annotations

from typing import Any

import pytest

from vitnas.config.field_rule import FieldRule


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        (FieldRule(), ["a", "b"], False),
        (FieldRule(meaning=lambda stage, value, network: None), [1, 2.0], False),
        (FieldRule(meaning=lambda stage, value, network: None), [1, None], True),
        (FieldRule(meaning=lambda stage, value, network: None, own=("a", "b")), ["a", "b"], False),
        (FieldRule(meaning=lambda stage, value, network: None, own=("a",)), ["a", "b"], True),
    ],
)
def test_values_may_repeat_that_do_not_mean_themselves(
    rule: FieldRule[Any], values: list[Any], expected: bool
) -> None:
    assert rule.may_repeat(values) == expected


def test_every_value_fits_unless_the_rule_says_why_not() -> None:
    assert not FieldRule().may_misfit
    assert FieldRule(misfit=lambda stage, value, network: "too long").may_misfit
