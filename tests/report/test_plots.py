"""front.png: a picture of the whole front; poor trials are counted below its axis."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from PIL import Image

from tests.report.runs import invented_run, reference, run_of, tree, trial
from vitnas.plotting import empty_figure
from vitnas.records import BaselineRecord, Outcome
from vitnas.report.marks import BASELINE_COLOUR, top1_range
from vitnas.report.plots import _draw, _dress, _legend_place, front_png, shown_families, shown_top1

PATH = Path("results/small")


def test_poor_trials_fall_below_the_axis_and_are_counted() -> None:
    good = [trial(n, 80.0 + n, 10 ** (n + 4)) for n in range(3)]
    run = run_of(PATH, *good, trial(7, 20.0, outcome=Outcome.STOPPED))
    limits, below = shown_top1(run, "flops")
    assert limits is not None
    assert 70 < limits[0] < 80 < 82 < limits[1]
    assert below == "1 trial"
    assert top1_range([], []) is None


def test_baselines_below_the_axis_are_counted_and_have_no_entry_in_the_legend() -> None:
    run = run_of(PATH, *(trial(n, 80.0 + n, 10 ** (n + 4)) for n in range(3)))
    known = [
        BaselineRecord(
            network=reference(family), outcome=Outcome.COMPLETE, flops=10**6, curve=(top1,)
        )
        for family, top1 in (("vgg", 79.0), ("vit", 20.0), ("vit", 30.0))
    ]
    run = replace(run, baselines=tuple(known))
    assert shown_top1(run, "flops")[1] == "2 baselines"
    assert shown_families(run, "flops") == {"vgg"}


def test_the_baselines_that_decide_the_comparison_are_in_the_picture() -> None:
    """A report had told of four baselines and shown one."""
    trials = [trial(n, 80.0 + n, 10 ** (n + 4)) for n in range(3)]
    known = [
        BaselineRecord(network=reference(), outcome=Outcome.COMPLETE, flops=flops, curve=(top1,))
        for flops, top1 in ((10_000, 77.0), (100_000, 78.0), (10**6, 79.0))
    ]
    limits, below = shown_top1(run_of(PATH, *trials, baselines=tuple(known)), "flops")
    assert limits is not None
    assert limits[0] < 77
    assert below == ""


def test_the_legend_is_where_no_front_is() -> None:
    """Where more is better, the front falls to the right."""
    run = run_of(PATH, trial(0))
    assert _legend_place(run, "flops")["loc"] == "lower right"
    assert _legend_place(run, "throughput")["loc"] == "lower left"
    costs = {"objectives": {"flops": "minimize", "throughput": "maximize"}}
    several = run_of(PATH, trial(0), space=costs)
    assert all("bbox_to_anchor" in _legend_place(several, cost) for cost in several.costs)


def test_a_picture_of_baselines_alone_ends_where_they_end() -> None:
    known = [
        BaselineRecord(network=reference(), outcome=Outcome.COMPLETE, flops=flops, curve=(9.0,))
        for flops in (1_000, 8_000)
    ]
    axes = empty_figure(8, 5).subplots()
    _dress(axes, run_of(PATH, baselines=tuple(known)), "flops")
    assert 8_000 < axes.get_xlim()[1] < 10_000
    assert [text.get_text() for text in axes.texts] == ["no candidate has a top-1 yet"]


def test_stopped_networks_have_a_ring_of_no_mixer_in_the_legend() -> None:
    stopped = trial(1, 49.0, 2_000_000, config=tree("dwconv"), outcome=Outcome.STOPPED)
    axes = empty_figure(8, 5).subplots()
    _draw(axes, run_of(PATH, trial(0), stopped), "flops")
    keys = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    ring = keys["stopped early (censored)"]
    assert to_hex(ring.get_edgecolors()[0]) == BASELINE_COLOUR


@pytest.mark.parametrize("number", [0, 1, 40])
def test_the_picture_is_a_picture(number: int) -> None:
    image = Image.open(io.BytesIO(front_png(invented_run(PATH, number))))
    assert image.size == (1360, 880)
    assert len(image.convert("RGB").resize((80, 60)).getcolors(4800) or []) > 2
