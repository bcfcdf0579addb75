from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.config.model import ModelConfig
from vitnas.config.notation import (
    format_schedule,
    human,
    parse_human,
    parse_schedule,
)
from vitnas.config.one_line import one_line

brackets = st.lists(st.integers(1, 99), min_size=1, max_size=4).map(tuple)
schedules = st.lists(brackets, min_size=1, max_size=5).map(tuple)


@given(schedules)
def test_schedules_survive_the_round_trip(schedule: tuple[tuple[int, ...], ...]) -> None:
    assert parse_schedule(format_schedule(schedule)) == schedule


def test_the_papers_schedule_reads_as_printed() -> None:
    assert parse_schedule("[8,2][4,1][1,1]") == ((8, 2), (4, 1), (1, 1))
    assert parse_schedule(" [8, 2] [4,1]") == ((8, 2), (4, 1))


@pytest.mark.parametrize("text", ["", "8,2", "[8,2", "[0]", "[-1]", "[1.5]", "[]", "[8,2],[4,1]"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="written like"):
        parse_schedule(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 k"),
        (1234567, "1.23 M"),
        (12.34e9, "12.3 G"),
        (999.9e6, "1.00 G"),
    ],
)
def test_numbers_for_reading_have_three_digits(number: float, text: str) -> None:
    assert human(number) == text


@given(st.floats(1e-3, 1e12))
def test_numbers_for_reading_keep_their_size(number: float) -> None:
    assert parse_human(human(number)) == pytest.approx(number, rel=0.006, abs=1e-6)


def test_sizes_are_read_as_people_write_them() -> None:
    assert parse_human("2M") == 2e6
    assert parse_human("1.5 G") == 1.5e9
    assert parse_human("5e6") == 5e6
    with pytest.raises(ValueError):
        parse_human("much")


def test_a_network_is_one_readable_line() -> None:
    config = ModelConfig.model_validate(
        {
            "img_size": 32,
            "stem": {"kind": "conv", "stride": 2},
            "groups": "[1,1][4,1]",
            "reattention_blocks": 0,
            "broad": {"gamma": 0.5},
            "stages": [
                {"token_mixer": "dwconv", "depth": 2, "embed_dim": 32},
                {"token_mixer": "mhsa", "embed_dim": 64, "nll_ratio": 1.0},
            ],
        }
    )
    stages = "2x dwconv 32 [1,1] > 1x mhsa 64 h2 [4,1] nll 1"
    assert one_line(config) == f"{stages} | gamma 0.5 | stem conv | stride 2"
