"""The parts of a network: what follows from their fields, and what they forbid alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config.test_model import MHSA, build
from vitnas.config.files import validate
from vitnas.config.parts import StemConfig
from vitnas.errors import ConfigError


def stem(**fields: Any) -> StemConfig:
    return validate(StemConfig, {"kind": "conv"} | fields)


def test_a_conv_stem_halves_first_and_then_keeps_the_grid() -> None:
    stems = stem(stride=4), stem(stride=4, convs=3), stem(stride=1)
    assert [(one.convolutions, one.halvings) for one in stems] == [(2, 2), (3, 2), (1, 0)]
    assert [one.conv_widths(8) for one in stems] == [(4, 8), (4, 8, 8), (8,)]


@pytest.mark.parametrize("kind", ["metaformer", "deepvit", "bvit"])
def test_a_stem_that_overlaps_halves_the_grid(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"stride = 1: a {kind} stem has stride 2 or more"):
        stem(kind=kind, stride=1)
    assert stem(kind="patch", stride=1).stride == 1


def test_stem_widths_are_those_before_the_last() -> None:
    plain, own = ({"kind": "conv", "stride": 8, **widths} for widths in ({}, {"widths": [9, 12]}))
    assert build(MHSA, stem=plain).stem.conv_widths(64) == (32, 64, 64)
    assert build(MHSA, stem=own).stem.conv_widths(64) == (9, 12, 64)
    assert build(MHSA, stem={**plain, "widths": [32, 64]}).key == build(MHSA, stem=plain).key
