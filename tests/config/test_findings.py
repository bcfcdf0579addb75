"""A finding of pydantic becomes one line: address, value, rule and the nearest valid value."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from vitnas.config.findings import RuleError, as_config_error, as_number, number_as_text


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    size: int | tuple[int, ...] = Field(default=1)
    kind: Literal["conv", "patch"] = "conv"
    share: float = Field(0.5, ge=0.0, le=1.0)
    odd: int = 1

    @field_validator("odd")
    @classmethod
    def _odd(cls, odd: int) -> int:
        if odd % 2 == 0:
            raise RuleError("must be odd", "", odd, odd + 1)
        return odd


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    parts: list[Inner] = []


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"sise": 1}, "parts[0].sise = 1: unknown key (nearest: size)"),
        ({"x": 1}, "parts[0].x = 1: unknown key; known are size, kind, share, odd"),
        ({"size": "x"}, "parts[0].size = 'x': should be a whole number"),
        ({"size": (1, "x")}, "parts[0].size[1] = 'x': should be a whole number"),
        ({"kind": "pach"}, "parts[0].kind = 'pach': should be 'conv' or 'patch' (nearest: patch)"),
        ({"share": 2.0}, "parts[0].share = 2.0: should be less than or equal to 1 (nearest: 1.0)"),
        ({"share": None}, "parts[0].share: is null and should be a number"),
        (
            {"share": "1e-1"},
            "parts[0].share = '1e-1': YAML reads this as text; a number needs a point and a signed "
            "exponent (nearest: 1.0e-1)",
        ),
        ({"odd": 2}, "parts[0].odd = 2: must be odd (nearest: 3)"),
        ({"odd": 2, "sise": 1}, "parts[0].sise = 1: unknown key (nearest: size)"),
    ],
    ids=lambda given: str(given)[:30],
)
def test_a_finding_is_one_line(part: dict[str, Any], line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"name": "a", "parts": [part]})
    assert str(as_config_error(caught.value, Outer)) == line


def test_a_file_and_what_is_missing_are_named() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({})
    assert str(as_config_error(caught.value, Outer, "a.yaml")) == "a.yaml: name: is required"


@pytest.mark.parametrize("number", [5e6, 1e-3, 2.5e-7, 1e300, -3e20])
def test_a_number_is_spelled_as_yaml_reads_it(number: float) -> None:
    import yaml

    assert yaml.safe_load(as_number(number)) == number


def test_what_yaml_reads_as_text_but_is_a_number() -> None:
    assert number_as_text("5e6") == 5e6
    assert [number_as_text(text) for text in ("five", "1e999", 5e6, "5.0")] == [None] * 4
