"""What each choice buys at like FLOPs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from vitnas.config.model import ModelConfig
from vitnas.config.space import load_space
from vitnas.config.trials import LikeTrial
from vitnas.cost.closed_form import closed_form
from vitnas.records import TrialRecord
from vitnas.report import effects
from vitnas.report.effects import Effects, effects_of
from vitnas.run import Run

DIGITS = Path(__file__).parents[1] / "config" / "golden" / "spaces" / "digits.yaml"
"""A space that does not change: docs/engine.md has figures of these runs."""
SECOND = "stages[1].token_mixer"


def truth(config: ModelConfig, flops: int) -> float:
    """Top-1 in percent that rises with FLOPs, and depends on the second stage's mixer alone."""
    odds = 0.3 * log(flops / 1e4) + 0.6 * (config.stages[1].token_mixer == "mhsa")
    return 100 / (1 + exp(-1 - odds))


@cache
def run(number: int = 70, seed: int = 0, images: int = 4000) -> Run:
    space, luck = load_space(DIGITS), np.random.default_rng(seed)
    trials: list[TrialRecord] = []
    while len(trials) < number:
        draw = LikeTrial({}, seed=1000 * seed + len(trials))
        config = space.suggest(draw)
        cost = closed_form(config)
        top1 = 100 * luck.binomial(images, truth(config, cost.flops) / 100) / images
        more: dict[str, Any] = {
            "config": config.to_tree(),
            "key": config.key,
            "params": draw.params,
        }
        more["num_params"] = cost.num_params
        trials.append(trial(len(trials), top1, cost.flops, **more))
    data = ENVIRONMENT["data"] | {"num_val_images": images}
    tree = space.config.model_dump(mode="json", exclude_unset=True)
    told = {"space": tree, "environment": ENVIRONMENT | {"data": data}}
    return run_of(Path("results/made_up"), *trials, name="digits", **told)


def test_what_matters_is_found_with_its_size() -> None:
    found = effects_of(run())
    assert found is not None
    first = found.axes[0]
    assert first.name == SECOND
    assert first.is_told
    assert first.effects[0].value == "mhsa"
    best, *others = first.effects
    gain = best.points - np.mean([one.points for one in others])
    top1 = np.mean([member.estimate or 0.0 for member in run().front])
    wanted = 0.6 * top1 * (100 - top1) / 100
    assert abs(gain - wanted) < 0.35 * wanted


def test_importance_has_the_error_of_a_difference() -> None:
    """Of two values one is the other's mirror image; of more the errors are joint ones."""
    found = effects_of(run())
    assert found is not None
    for one in found.axes:
        best, worst = one.effects[0], one.effects[-1]
        assert one.gain == pytest.approx(best.points - worst.points)
        if len(one.effects) == 2:
            assert one.gain_error == pytest.approx(best.error + worst.error)
        assert 0 < one.gain_error <= best.error + worst.error + 1e-9


@pytest.mark.slow
def test_what_does_not_matter_is_seldom_told() -> None:
    """One axis in twenty may be, by chance."""
    found = [effects_of(run(60, seed)) for seed in range(3)]
    others = [one for effects in found if effects for one in effects.axes if one.name != SECOND]
    assert len(others) > 40
    assert sum(one.is_told for one in others) <= 0.1 * len(others)


def test_flops_are_taken_off() -> None:
    """The truth rises with FLOPs, so wider networks are better, but not at like FLOPs.

    The best mixer stands at the upper end of this front, which makes it steeper than that.
    """
    found = effects_of(run(60, 1))
    assert found is not None
    top1 = np.mean([member.estimate or 0.0 for member in run(60, 1).front])
    assert found.doubling is not None
    assert found.doubling == pytest.approx(0.3 * log(2) * top1 * (100 - top1) / 100, rel=0.2)
    wide = next(one for one in found.axes if one.name == "stages[1].embed_dim")
    assert wide.gain < 0.5 * found.doubling


@pytest.mark.slow
def test_each_value_was_given_to_each_member() -> None:
    found = effects_of(run())
    assert found is not None
    for one in found.axes:
        assert 1 <= one.members <= len(run().front)
        assert len({effect.value for effect in one.effects}) == len(one.effects) > 1
        points = [effect.points for effect in one.effects]
        assert points == sorted(points, reverse=True)
        assert abs(sum(points)) < 1e-6


def test_the_mixers_of_the_papers_spaces_are_few_enough_to_be_compared() -> None:
    axes = {axis.name: axis for axis in load_space("papers_32").axes}
    assert len(effects._values(axes["stages#0/stages[0].token_mixer"])) == 9


def axes_of(found: Effects) -> list[str]:
    judged = [one.name for one in found.axes] + [name for name, _ in found.paired]
    return sorted([*judged, *(name for name, _ in found.unjudged)])


def asked(source: Run) -> list[str]:
    return sorted({name for one in source.trials for name in one.params})


@pytest.mark.slow
def test_every_axis_that_was_asked_is_told() -> None:
    for source in (run(), run(70, 1), run(24, 2)):
        found = effects_of(source)
        assert found is not None
        assert axes_of(found) == asked(source)


RATIO = "stages[0].nll_ratio"


def asked_off_the_front(most: int, *values: float) -> Effects:
    """Of a run whose networks were asked for `RATIO` only off the front, and at most so many."""
    source = run()
    members = {member.number for member in source.front}
    off = [one.number for one in source.trials if one.number not in members][:most]
    given = {number: values[place % len(values)] for place, number in enumerate(off)}
    trials = []
    for one in source.trials:
        params = {name: value for name, value in one.params.items() if name != RATIO}
        params |= {RATIO: given[one.number]} if one.number in given else {}
        trials.append(replace(one, params=params))
    found = effects_of(replace(source, trials=tuple(trials)))
    assert found is not None
    assert RATIO not in {one.name for one in found.axes}
    return found


def test_matched_pairs_judge_what_no_member_of_the_front_was_asked() -> None:
    paired = dict(asked_off_the_front(70, 0.0, 0.5).paired)[RATIO]
    assert {value for value, _ in paired.values} == {0.0, 0.5}
    assert paired.ends is not None
    assert paired.ends.points >= 0, "the better value comes first"


@pytest.mark.slow
def test_what_nothing_can_judge_says_why() -> None:
    assert "only one value" in dict(asked_off_the_front(70, 0.5).unjudged)[RATIO]
    few = dict(asked_off_the_front(2, 0.0, 0.5).unjudged)
    assert "no two values have three pairs" in few[RATIO]


def test_a_short_run_says_that_nothing_is_judged() -> None:
    short = replace(run(), trials=run().trials[:4])
    found = effects_of(short)
    assert found is not None
    assert found.axes == ()
    assert found.doubling is None
    assert axes_of(found) == asked(short)


def test_foreign_runs_have_none() -> None:
    unreadable = run_of(Path("a"), *run().trials, space={"name": "other", "model": {"stages": 3}})
    assert effects_of(unreadable) is None
    assert effects_of(run_of(Path("a"))) is None
