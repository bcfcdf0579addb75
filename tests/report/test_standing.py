"""What a report says of noise: means and errors, confident and plausible, with and without."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.report.runs import run_of, trial
from vitnas.config.mixers import MIXERS
from vitnas.exported.choose import choose_trial
from vitnas.noise import binomial_error
from vitnas.records import Outcome, TrialRecord, averaged
from vitnas.report.caveats import sentences
from vitnas.report.front_figure import front_figure
from vitnas.report.page import render_pages
from vitnas.report.plots import front_png
from vitnas.report.standing import error_of, off_front, open_trials
from vitnas.report.tables import front_csv, trials_csv
from vitnas.report.terminal import front_text
from vitnas.report.trust import assess
from vitnas.report.write import config_text
from vitnas.run import Run

PATH = Path("results/small")


def again(number: int, of: int, top1: float, flops: int, **more: object) -> TrialRecord:
    return trial(number, top1, flops, replicate_of=of, seed=100 + number, **more)


@pytest.fixture
def run() -> Run:
    """0 and 1 beat all that is cheaper, 1 was lucky once, 2 is hardly better; 3 is out of reach."""
    trials = [
        trial(0, 50.0, 1_000_000),
        trial(1, 72.0, 2_000_000),
        trial(2, 71.0, 2_100_000),
        trial(3, 40.0, 3_000_000),
        again(4, 1, 69.0, 2_000_000),
        again(5, 2, 71.4, 2_100_000),
        again(6, 0, 50.5, 1_000_000, outcome=Outcome.DIVERGED),
        again(7, 1, 70.5, 2_000_000),
    ]
    replicates = tuple(t for t in trials if t.replicate_of is not None)
    return run_of(PATH, *averaged(trials), replicates=replicates)


def test_means_are_what_a_run_is_about(run: Run) -> None:
    assert [t.number for t in run.trials] == [0, 1, 2, 3]
    assert [t.trainings for t in run.trials] == [(50.0,), (72.0, 69.0, 70.5), (71.0, 71.4), (40.0,)]
    assert run.trials[1].top1 == pytest.approx(70.5)
    assert [t.number for t in run.front] == [0, 1, 2]
    assert run.trainings_of(run.trials[1]) == (1, 4, 7)
    assert choose_trial(run, under="2M").number == 1
    assert choose_trial(run, under="2.5M").number == 2
    assert run.chances[3] == 0.0
    assert [t.number for t in run.confident] == [0, 1]
    assert [t.number for t in run.plausible] == [2]
    assert run.standing(run.trials[3]) is None


def test_errors_shrink_with_trainings_and_grow_with_the_dispersion(run: Run) -> None:
    assert run.noise is not None
    assert run.noise.is_measured
    one, three = error_of(run, run.trials[0]), error_of(run, run.trials[1])
    assert one == pytest.approx(run.noise.dispersion**0.5 * binomial_error(50.0, 5000))
    assert three == pytest.approx((run.noise.dispersion / 3) ** 0.5 * binomial_error(70.5, 5000))
    assert error_of(run, trial(9, outcome=Outcome.STOPPED)) is None


def test_the_terminal_says_it(run: Run) -> None:
    lines = front_text(run).splitlines()
    assert "top-1 % ± error  of" in lines[0]
    assert "50.00 ± " in lines[1]
    assert "  1  confident 1.00" in lines[1]
    assert "70.50 ± " in lines[2]
    assert lines[-2].startswith("top-1: mean over the trainings")
    assert "replicate" not in front_text(run_of(PATH, trial(0)))


def test_the_csv_files_hold_candidates_and_replicates(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(trials_csv(run))))
    assert [row["trial"] for row in rows] == [str(number) for number in range(8)]
    assert [row["replicate_of"] for row in rows] == ["", "", "", "", "1", "2", "0", "1"]
    assert [row["num_trainings"] for row in rows] == ["1", "3", "2", "1", "", "", "", ""]
    assert (rows[1]["top1_percent"], rows[4]["top1_percent"]) == ("70.5", "69.0")
    assert rows[0]["standing"] == "confident"
    assert rows[6]["outcome"] == "diverged"
    members = list(csv.DictReader(io.StringIO(front_csv(run))))
    assert [row["num_trainings"] for row in members] == ["1", "3", "2"]
    assert all(float(row["chance"]) >= 0.1 for row in members)
    assert all(float(row["standard_error_points"]) > 0 for row in members)


def test_the_words_say_what_it_means(run: Run) -> None:
    text = " ".join(sentences(assess(run)))
    assert "2 of 4 networks that reached the end got 4 replicates" in text
    assert "not counted: 1 replicate that did not reach the end" in text
    assert "times as much as the binomial error" in text
    assert "Of 3 on the front, 2 are confident and 1 not. Other images" in text
    assert "one seed" not in text


def test_without_replicates_the_error_is_the_tables_binomial_one() -> None:
    run = run_of(PATH, trial(0, 50.0), trial(1, 70.0, 2_000_000))
    (row, *_) = csv.DictReader(io.StringIO(front_csv(run)))
    shown = f"50.00 ± {float(row['standard_error_points']):.2f}"
    assert shown == "50.00 ± 0.71"
    pages = render_pages(run, b"")
    for page in (pages.html, pages.markdown):
        assert shown in page
        assert "binomial standard error of top-1. It comes only from the number of images" in page
    unknown = render_pages(run_of(PATH, trial(0), environment={}), b"")
    assert "±" not in unknown.markdown


def test_without_replicates_the_words_say_what_is_missing() -> None:
    run = run_of(PATH, trial(0, 50.0, 10**6), trial(1, 70.0, 2 * 10**6), trial(2, 69.8, 2 * 10**6))
    text = " ".join(sentences(assess(run)))
    assert "The scatter between seeds is not measured here" in text
    assert "With the binomial error alone, 1 of 2 on the front would be on it" in text
    assert "and 1 other might be (the tables of the front name them)" in text
    assert "--replicates 3" in text
    blind = run_of(PATH, trial(0), environment={})
    assert "by that error alone" not in " ".join(sentences(assess(blind)))
    assert blind.chances == {}
    assert blind.confident == blind.plausible == ()


def test_both_pages_show_trainings_and_standing(run: Run) -> None:
    pages = render_pages(run, b"")
    for page in (pages.html, pages.markdown):
        assert "confident 1.00" in page
        assert "70.50 ± " in page
    assert "| [1](configs/1.yaml)" in pages.markdown
    assert "3 candidates" not in pages.markdown
    assert "4 replicates" in pages.markdown
    plain = render_pages(run_of(PATH, trial(0), trial(1, 60.0, 2_000_000)), b"")
    for page in (plain.html, plain.markdown):
        assert "confident 1.00" in page
        assert "rest on the error of the images alone" in page
        assert "trainings |" not in page
        assert "Train-<br>ings" not in page
    assert "by images alone" not in pages.html
    unknown = render_pages(run_of(PATH, trial(0), environment={}), b"")
    assert "on the front, by" not in unknown.markdown
    assert "confident" not in unknown.markdown


def test_who_is_off_the_front_but_may_be_on_it_has_a_table(run: Run) -> None:
    near = trial(8, 70.4, 2_050_000)
    more = Run(**{**vars(run_of(PATH, *run.trials, near)), "replicates": run.replicates})
    assert [t.number for t in off_front(more)] == [8]
    assert 8 in [t.number for t in open_trials(more)]
    pages = render_pages(more, b"")
    assert "Not on the front" in pages.html
    assert "| [8](configs/8.yaml)" in pages.markdown.partition("Not on the front")[2]
    assert "not on the front, but may be:" in front_text(more)


def test_without_replicates_it_has_that_table_too_and_says_by_what() -> None:
    run = run_of(PATH, trial(0, 50.0, 10**6), trial(1, 70.0, 2 * 10**6), trial(2, 69.8, 2 * 10**6))
    assert [t.number for t in off_front(run)] == [2]
    pages = render_pages(run, b"")
    for page in (pages.html, pages.markdown):
        table = page.partition("but may be on the true one, by the images alone")[2]
        assert "configs/2.yaml" in table.partition("configs/0.yaml")[0]
        assert "plausible 0." in table
        assert "by images alone" in page
    assert " on the front, by images alone |" in pages.markdown


def test_the_plot_has_bars_and_open_marks(run: Run) -> None:
    figure = front_figure(run)
    assert figure is not None
    (bars,) = [trace for trace in figure.data if "error_y" in trace]
    assert sorted(bars["x"]) == [1_000_000, 2_000_000, 2_100_000]
    possible, key = [t for t in figure.data if t["name"] == "may be on the front"]
    assert (possible["showlegend"], key["x"]) == (False, [None])
    assert possible["x"] == [2_100_000]
    assert "mean of 2 trainings" in possible["text"][0]
    drawn = [x for trace in figure.data if trace["name"] in MIXERS for x in trace["x"]]
    assert sorted(drawn) == [1_000_000, 2_000_000, 3_000_000]
    assert front_png(run).startswith(b"\x89PNG")
    plain = front_figure(run_of(PATH, trial(0)))
    assert plain is not None
    assert not [trace for trace in plain.data if "error_y" in trace]


def test_model_files_say_how_many_trainings(run: Run) -> None:
    assert "the mean of 3 trainings" in config_text(run, run.trials[1], on_front=True)
    assert "with one seed" in config_text(run, run.trials[0], on_front=True)
