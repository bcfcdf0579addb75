"""The first sentence of a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from tests.test_versus import baseline, run_with
from vitnas.records import Outcome
from vitnas.report import summary_text, write_report
from vitnas.report.verdict import (
    _basis,
    _winners,
    baseline_rows,
    finishing_command,
    rates_text,
    verdict,
)
from vitnas.sessions import Environment, Session
from vitnas.versus import versus


def test_a_front_that_is_above() -> None:
    run = run_with(baseline("plain", 10_000, 55.0, 54.0), baseline("tall", 1_000_000, 83.0, 81.0))
    assert verdict(run) == (
        "At equal FLOPs the front is 14.00 points above the best of 2 baselines (plain and tall): "
        "95 % interval +12.84 to +15.16. This is the mean over log FLOPs from 10.0 k to 1.00 M, on "
        "10,000 test images, which were used for no choice. The front is ahead over 100 % of this "
        "range. The interval is of the images alone: each network was trained once, and seeds "
        "scatter further (`--replicates 3` measures it)."
    )


def test_a_front_that_is_below_says_who_is_ahead_and_where() -> None:
    said = verdict(run_with(baseline("plain", 10_000, 90.0, 89.0)))
    assert "31.00 points below the only baseline (plain)" in said
    assert "This is at 10.0 k FLOPs, on 10,000 test images" in said
    assert "of this range" not in said, "there is one place"
    assert "Ahead of the front: plain at 10.0 k FLOPs." in said


def test_ranges_of_one_family_are_listed() -> None:
    found = versus(run_with(baseline("plain", 10_000, 55.0, 54.0)))
    assert found is not None
    ahead = (("plain", 1e4, 1e4), ("plain", 2e4, 3e4), ("tall", 4e4, 5e4))
    assert _winners(replace(found, ahead=ahead)) == (
        " Ahead of the front: plain at 10.0 k and from 20.0 k to 30.0 k FLOPs; tall from 40.0 k to "
        "50.0 k FLOPs."
    )


def test_without_test_images_it_says_why_and_what_counts() -> None:
    run = run_with(baseline("plain", 10_000, 55.0))
    data = run.environment.data.model_copy(update={"num_test_images": 0})
    none = replace(run, environment=run.environment.model_copy(update={"data": data}))
    what = "on the 5,000 images that score candidates, because {}, so the front counts with its "
    assert what.format("not all networks have a test score") in verdict(run)
    assert what.format("there are no test images") in verdict(none)


def test_all_of_the_range_is_no_rounded_number() -> None:
    """A family may be ahead in a small part of it."""
    run = run_with(baseline("plain", 10_000, 55.0, 54.0), baseline("tall", 1_000_000, 83.0, 81.0))
    found = versus(run)
    assert found is not None
    assert "ahead over more than 99 % of" in _basis(replace(found, share=0.998), run)
    assert "ahead over less than 1 % of" in _basis(replace(found, share=0.002), run)
    assert "ahead over 0 % of" in _basis(replace(found, share=0.0), run)


def test_a_run_that_has_not_trained_all_its_baselines_says_so(tmp_path: Path) -> None:
    none = run_of(tmp_path, trial(0), num_baselines=19)
    assert verdict(none) == (
        "None of 19 baselines has been trained yet, so this report does not say whether the front "
        "is worth its search."
    )
    some = replace(run_with(baseline("plain", 10_000, 55.0, 54.0)), num_baselines=3)
    assert verdict(some).endswith(
        " 2 of 3 baselines have not been trained yet; the best of all may be better."
    )


def test_an_unknown_number_of_images_is_the_reason(tmp_path: Path) -> None:
    data = {"name": "cifar10", "num_classes": 10}
    known = baseline("plain", 1_000_000, 55.0)
    run = run_of(tmp_path, trial(0), baselines=(known,), environment={"data": data})
    assert "does not say on how many images" in verdict(run)


def test_a_scatter_that_was_measured_is_in_the_interval() -> None:
    once = run_with(baseline("plain", 10_000, 60.0, 58.2))
    again: dict[str, Any] = {"replicates": (60.0,), "test_replicates": (58.0,)}
    front_alone = replace(once, trials=tuple(replace(t, **again) for t in once.trials))
    rivals = tuple(replace(one, **again) for one in once.baselines)
    assert verdict(once).endswith("seeds scatter further (`--replicates 3` measures it).")
    assert verdict(front_alone).endswith(
        "of images and seeds: each network counts with 1 to 2 trainings."
    )
    assert verdict(replace(front_alone, baselines=rivals)).endswith("counts with 2 trainings.")


def test_what_cannot_be_told_apart_is_said_so() -> None:
    said = verdict(run_with(baseline("plain", 10_000, 60.0, 58.2)))
    assert said.startswith(
        "At equal FLOPs the front and the only baseline (plain) cannot be told apart: −0.20"
    )


def test_runs_without_a_comparison_say_why(tmp_path: Path) -> None:
    assert verdict(run_of(tmp_path, trial(0))).startswith("No baselines were trained")
    diverged = baseline("plain", 10_000, 50.0, outcome=Outcome.DIVERGED, error="loss is nan")
    assert "No baseline was trained to the end" in verdict(run_with(diverged))
    assert "no FLOPs in common" in verdict(run_with(baseline("plain", 2_000_000, 9.0, 9.0)))
    assert "baselines are not compared" in verdict(
        run_of(tmp_path, baselines=(baseline("p", 9, 9.0),))
    )
    assert baseline_rows(run_with(diverged))[0]["top1"] == "diverged"


def test_every_file_of_a_report_has_it(tmp_path: Path) -> None:
    members = baseline("plain", 10_000, 55.0, 54.0), baseline("other", 900_000, 83.0, 81.0)
    run = run_of(tmp_path, *run_with().trials, baselines=members)
    write_report(run)
    first = (tmp_path / "report.md").read_text().splitlines()[2]
    assert first == verdict(run)
    page = (tmp_path / "report.html").read_text()
    assert page.index("At equal FLOPs the front is") < page.index("on the Pareto front of")
    assert "<code>--replicates 3</code>" in page[: page.index("on the Pareto front of")]
    assert "baseline plain" in page
    assert (tmp_path / "baselines.csv").read_text().count("\n") == 3
    assert '"points": 13.7' in (tmp_path / "comparison.json").read_text()
    assert summary_text(run).endswith(verdict(run))


def test_a_baseline_that_was_repeated_stands_there_once_with_its_mean(tmp_path: Path) -> None:
    again: dict[str, Any] = {"replicates": (57.0,), "test_replicates": (58.0,)}
    members = baseline("plain", 10_000, 55.0, 54.0, **again), baseline("other", 900_000, 83.0, 81.0)
    write_report(run_of(tmp_path, *run_with().trials, baselines=members))
    cells = (
        "| plain | 8 | 10.0 k | – | – | 2 | 56.00 | 56.00 |",
        "| other | 8 | 900 k | – | – | 1 | 83.00 |",
    )
    assert all(row in (tmp_path / "report.md").read_text() for row in cells)
    plain = (tmp_path / "baselines.csv").read_text().splitlines()[1]
    assert plain.startswith("plain,8,complete,56.0,56.0,10000,")
    assert plain.endswith(",2,,")
    page = (tmp_path / "report.html").read_text()
    assert page.count("baseline plain") == 1
    assert "top-1 56.00 % (test 56.00 %)" in page


def test_the_learning_rates_that_were_tried_are_told(tmp_path: Path) -> None:
    tried = ((0.004, 50.0), (0.008, None), (0.016, 55.0))
    further = (*tried, (0.032, 51.0))
    members = (
        baseline("plain", 10_000, 55.0, 54.0, lr=0.016, rates=tried),
        baseline("plain", 900_000, 83.0, 81.0, lr=0.016),
        baseline("other", 800_000, 73.0, 71.0, lr=0.008, rates=further),
    )
    run = run_of(tmp_path, *run_with().trials, baselines=members)
    write_report(run)
    assert rates_text(run).startswith("Each family has its own learning rate: one of its members")
    assert " at 3 to 4 rates, " in rates_text(run)
    assert rates_text(run) in (tmp_path / "report.md").read_text()
    assert rates_text(run) in (tmp_path / "report.html").read_text()
    assert (
        "| plain | 8 | 10.0 k | – | 0.016 | 55.00 | 54.00 |" in (tmp_path / "report.md").read_text()
    )
    lines = (tmp_path / "baselines.csv").read_text().splitlines()
    assert [line.rsplit(",", 2)[1:] for line in lines[1:3]] == [
        ["0.016", "0.004=50.0;0.008=;0.016=55.0"],
        ["0.016", ""],
    ]
    assert "each for itself" not in rates_text(run)
    climbed = replace(members[1], rates=tried)
    decided = replace(run, baselines=(members[0], climbed, members[2]))
    assert "are the next best or diverged at it then tried further" in rates_text(decided)
    many = replace(members[1], rates=(*further, (0.064, 50.0), (0.128, 49.0)))
    decided = replace(run, baselines=(members[0], many, members[2]))
    assert " at 3 to 4 rates, " in rates_text(decided), "not those of what decides"
    before = replace(members[1], rates=tried[1:])
    older = replace(run, baselines=(members[0], before, members[2]))
    assert rates_text(older) == rates_text(run), "it had been trained at the trials' rate"
    alone = replace(run, baselines=members[1:2])
    assert rates_text(alone) == ""


@pytest.mark.parametrize("done", [False, None, True])
def test_baselines_that_still_climb_are_told_with_the_command(
    tmp_path: Path, done: bool | None
) -> None:
    session = {"command": "vitnas search 'my space.yaml' --trials 9", "baselines_done": done}
    run = run_of(
        tmp_path,
        *run_with().trials,
        baselines=run_with(baseline("plain", 10_000, 55.0, 54.0)).baselines,
        environment=ENVIRONMENT | {"sessions": [{"baselines_done": False}, session]},
    )
    write_report(run)
    told = (tmp_path / "report.md").read_text().partition("## The baselines")[2]
    section = (tmp_path / "report.html").read_text().partition('id="baselines"')[2]
    command = "`vitnas search 'my space.yaml' --trials 9` finishes them."
    assert (command in told) is (done is False)
    assert ("the comparison with the front may change" in told) is (done is False)
    page = section.replace("&#39;", "'")
    code = "<code>vitnas search 'my space.yaml' --trials 9</code> finishes them."
    assert (code in page) is (done is False)
    unknown = replace(run, environment=Environment(sessions=[Session(baselines_done=False)]))
    assert finishing_command(unknown) == "vitnas search"


def test_a_report_of_a_run_without_baselines_has_no_file_of_them(tmp_path: Path) -> None:
    write_report(run_of(tmp_path, trial(0)))
    assert not (tmp_path / "baselines.csv").exists()
