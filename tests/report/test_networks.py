"""A trial's network in words, also where its tree is not one of ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.report.runs import trial
from vitnas.config.one_line import one_line
from vitnas.report.networks import UNKNOWN, dominant_mixer, network_line, network_lines


def test_a_network_is_one_line() -> None:
    assert network_line(trial(0)) == one_line(trial(0).network)


def test_the_mixer_that_runs_most_often_counts_passes() -> None:
    tree: dict[str, Any] = {
        "img_size": 16,
        "stem": {"stride": 2},
        "stages": [
            {"token_mixer": "dwconv", "embed_dim": 16, "depth": 3},
            {"token_mixer": "mhsa", "embed_dim": 32, "depth": 2, "groups": "[2,1]"},
        ],
    }
    assert dominant_mixer(replace(trial(0), config=tree)) == "mhsa"
    stages = [tree["stages"][0], tree["stages"][1] | {"groups": "[1]", "depth": 3}]
    assert dominant_mixer(replace(trial(0), config=tree | {"stages": stages})) == "dwconv"


def test_a_stage_without_blocks_gives_the_mark_only_if_there_is_no_other() -> None:
    skip = {"token_mixer": "skip", "embed_dim": 16}
    tree: dict[str, Any] = {"img_size": 16, "stem": {"stride": 2}, "stages": [skip, skip]}
    assert dominant_mixer(replace(trial(0), config=tree)) == "skip"
    tree["stages"] = [skip, skip, {"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8}]
    assert dominant_mixer(replace(trial(0), config=tree)) == "mhsa"


def test_what_cannot_be_read_is_said() -> None:
    strange, nothing = replace(trial(0), config={"x": 1}), replace(trial(0), config={})
    assert network_line(strange) == f"unreadable configuration {strange.key}"
    assert network_line(nothing) == "not recorded"
    listed = network_lines([nothing, trial(0), strange])
    assert listed == [network_line(nothing), network_line(trial(0)), network_line(strange)]
    assert dominant_mixer(strange) == dominant_mixer(nothing) == UNKNOWN
