"""A trial's network in words, also where its tree is not one of ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.runs import tree, trial
from vitnas.config.one_line import one_line
from vitnas.report.networks import UNKNOWN, network_line, network_lines, widest_mixer


def test_a_network_is_one_line() -> None:
    assert network_line(trial(0)) == one_line(trial(0).network)


@pytest.mark.parametrize(
    ("mixers", "mark"),
    [
        (["dwconv", "mhsa"], "mhsa"),  # one that mixes all tokens, however rare it is
        (["dwconv", "mlp"], "mlp"),
        (["mbconv", "dwconv"], "mbconv"),  # in a tie the earlier stage
        (["identity", "pool"], "pool"),
        (["skip", "dwconv"], "dwconv"),
        (["skip", "identity"], "skip"),
        (["skip", "skip"], "skip"),
    ],
)
def test_the_mark_is_of_the_mixer_of_the_widest_reach(mixers: list[str], mark: str) -> None:
    assert widest_mixer(trial(0, config=tree(*mixers))) == mark


def test_of_mixers_of_one_reach_the_one_that_runs_most_often_counts_by_passes() -> None:
    """Three blocks in one stage; two in the other, passed twice."""
    looped = tree("ska", "mhsa")
    looped["stages"][0]["depth"], looped["stages"][1]["depth"] = 3, 2
    assert widest_mixer(trial(0, config=looped)) == "ska"
    looped["stages"][1]["groups"] = [2, 1]
    assert widest_mixer(trial(0, config=looped)) == "mhsa"


def test_what_cannot_be_read_is_said() -> None:
    strange, nothing = replace(trial(0), config={"x": 1}), replace(trial(0), config={})
    assert network_line(strange) == f"unreadable configuration {strange.key}"
    assert network_line(nothing) == "not recorded"
    listed = network_lines([nothing, trial(0), strange])
    assert listed == [network_line(nothing), network_line(trial(0)), network_line(strange)]
    assert widest_mixer(strange) == widest_mixer(nothing) == UNKNOWN
