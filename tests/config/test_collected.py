"""Which layers broad attention collects from."""

from __future__ import annotations

import pytest

from tests.config.test_model import MHSA, build
from vitnas.config.collected import collected, shortest
from vitnas.errors import ConfigError

STAGES = [0, 0, 1, 1, 1, 3]


@pytest.mark.parametrize(
    ("layers", "found"),
    [
        ("all", (0, 1, 2, 3, 4, 5)),
        ("stages", (1, 4, 5)),
        ("last:2", (4, 5)),
        ("last:7", (0, 1, 2, 3, 4, 5)),
        ("every:2", (1, 3, 5)),
        ("every:4", (1, 5)),
        ("every:6", (5,)),
    ],
)
def test_layers_by_index(layers: str, found: tuple[int, ...]) -> None:
    assert collected(layers, STAGES, flat=False) == found


def test_null_is_all_in_one_stage_and_the_last_of_each_in_several() -> None:
    assert collected(None, [0, 0, 0], flat=True) == (0, 1, 2)
    assert collected(None, STAGES, flat=False) == (1, 4, 5)
    assert collected(None, [2, 2], flat=False) == (1,)


@pytest.mark.parametrize("layers", ["all", "stages", "last:1", "every:3"])
def test_nothing_is_collected_where_there_is_nothing(layers: str) -> None:
    assert collected(layers, [], flat=True) == ()


def test_the_shortest_spelling_collects_the_same() -> None:
    spellings = [
        None,
        "all",
        "stages",
        *(f"{k}:{n}" for k in ("last", "every") for n in range(1, 8)),
    ]
    for stages, flat in ((STAGES, False), ([0] * 5, True), ([1], False)):
        found = {shortest(text, stages, flat=flat) for text in spellings}
        sets = {collected(text, stages, flat=flat) for text in spellings}
        assert {collected(text, stages, flat=flat) for text in found} == sets
        assert len(found) == len(sets)


@pytest.mark.parametrize("layers", ["last", "last:0", "last:-1", "first:2", "every:", "2", ""])
def test_another_text_is_refused(layers: str) -> None:
    with pytest.raises(ConfigError, match="last:K or every:K") as refused:
        build(MHSA, broad={"gamma": 0.5, "layers": layers})
    assert "broad.layers" in str(refused.value)
