"""A survey in words: what is exact, what is estimated, and what has no number."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.config.trees import space_of
from tests.cost.spaces import SMALL
from vitnas.config.one_line import one_lines
from vitnas.config.space import SearchSpace
from vitnas.cost.survey import SpaceSurvey, survey
from vitnas.cost.survey_text import survey_json, survey_text


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return space_of(SMALL)


@pytest.fixture(scope="module")
def found(space: SearchSpace) -> SpaceSurvey:
    return survey(space)


def test_a_space_that_was_listed(space: SearchSpace, found: SpaceSurvey) -> None:
    lines = survey_text(space, found).splitlines()
    assert lines[0] == space.name
    assert lines[1] == f"  networks    {found.num_networks:,.0f}, {len(space.axes)} axes"
    assert lines[4] == "  in limits   100 % of all of them"
    assert lines[5] == "  samples"
    assert [line.partition(" FLOPs  ")[2] for line in lines[6:]] == one_lines(found.samples)


@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (3.2e9, 0.05, "about 3.2e+09 (+-5 %, estimated)"),
        (float("inf"), 0.0, "uncountable (a float axis without step)"),
        (5e6, 0.0, "about 5e+06 (+-0 %, estimated)"),
    ],
)
def test_a_space_that_is_too_large_to_list(
    space: SearchSpace, found: SpaceSurvey, number: float, error: float, text: str
) -> None:
    large = replace(found, num_networks=number, error=error, num_seen=2000, within=0.25)
    lines = survey_text(space, large).splitlines()
    assert lines[1].startswith(f"  networks    {text}, ")
    assert lines[4] == "  in limits   25 % of 2,000 random draws"


def test_problems_come_last(space: SearchSpace, found: SpaceSurvey) -> None:
    text = survey_text(space, replace(found, samples=(), problems=("one", "two")))
    assert "samples" not in text
    assert text.endswith("  problem     one\n  problem     two")


def test_the_same_for_programs(space: SearchSpace, found: SpaceSurvey) -> None:
    tree = json.loads(json.dumps(survey_json(space, found), allow_nan=False))
    assert (tree["name"], tree["num_networks"]) == (space.name, found.num_networks)
    assert tree["flops"] == list(found.flops)
    assert len(tree["samples"]) == len(found.samples)
    endless = replace(found, num_networks=float("inf"))
    assert survey_json(space, endless)["num_networks"] is None
