"""The papers' models in a report: known by their networks, and only where they were trained."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.report.runs import invented_run, run_of, trial
from vitnas.nn.zoo import zoo_config
from vitnas.records import Outcome, TrialRecord
from vitnas.report.front_figure import front_figure
from vitnas.report.page import render_pages
from vitnas.report.papers import paper_models, papers_text
from vitnas.report.plots import front_png

PATH = Path("results/small")
NAME = "the papers' models"


def of_zoo(number: int, name: str, top1: float = 70.0, **more: Any) -> TrialRecord:
    """A trial of a paper's model at 32 px, or of the size in `more`."""
    sizes = {"img_size": more.pop("img_size", 32), "in_chans": 1, "num_classes": 10}
    network = zoo_config(name, **sizes, drop_path_rate=0.25)
    fields = {"config": network.to_tree(), "key": network.key, "flops": 10 ** (number + 6), **more}
    return trial(number, top1, **fields)


def test_a_run_of_other_networks_has_none() -> None:
    run = invented_run(PATH, 40)
    assert paper_models(run) == []
    assert papers_text(run) == ""
    figure = front_figure(run)
    assert figure is not None
    assert NAME not in [trace["name"] for trace in figure.data]


def test_a_model_is_known_at_other_sizes_classes_and_rates() -> None:
    run = run_of(PATH, trial(0), of_zoo(1, "sret_t"), of_zoo(2, "deepvit_s", 60.0, img_size=224))
    (small, whole) = paper_models(run)
    assert (small.name, small.trial.number) == ("sret_t", 1)
    assert small.source == "SReT-T, Tables 5, 7 and 12"
    assert small.resized == "224 px in the paper, 32 px here"
    assert (whole.name, whole.resized) == ("deepvit_s", "")


def test_of_equal_networks_it_is_that_of_the_papers_size() -> None:
    run = run_of(PATH, of_zoo(0, "sret_t", img_size=384), of_zoo(1, "sret_t_384", img_size=64))
    assert [(one.name, one.resized != "") for one in paper_models(run)] == [
        ("sret_t_384", False),
        ("sret_t", True),
    ]


def test_the_plot_marks_what_was_trained_to_the_end() -> None:
    stopped = of_zoo(2, "deepvit_s", 40.0, outcome=Outcome.STOPPED)
    run = run_of(PATH, trial(0, 60.0), of_zoo(1, "sret_t"), stopped)
    figure = front_figure(run)
    assert figure is not None
    (trace,) = (trace for trace in figure.data if trace["name"] == NAME)
    assert trace["x"] == [10**7]
    assert trace["customdata"] == [
        "<b>sret_t</b>: SReT-T, Tables 5, 7 and 12<br>224 px in the paper, 32 px here"
    ]
    assert trace["text"][0].startswith("<b>trial 1</b>")
    pages = render_pages(run, b"")
    assert "Squares are around the papers' models." in pages.html
    for text in ("`sret_t` (trial 1, 70.00 %, on the front)", "(trial 2, 40.00 %, stopped early)"):
        assert text in pages.markdown


def test_the_picture_has_the_square() -> None:
    has_orange = []
    for network in (of_zoo(1, "sret_t"), trial(1, 70.0, 10**7)):
        picture = front_png(run_of(PATH, trial(0, 60.0), network))
        pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).reshape(-1, 3)
        has_orange.append((pixels == (199, 125, 0)).all(axis=1).any())
    assert has_orange == [True, False]


def test_what_cannot_be_read_is_no_paper_s() -> None:
    assert paper_models(run_of(PATH, trial(0, config={"stages": [{"token_mixer": "no:M"}]}))) == []
