"""Rows of the front, bins and CSV files against runs small enough to check by hand."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.report.runs import invented_run, run_of, tree, trial
from vitnas.records import Outcome
from vitnas.report.networks import network_line, widest_mixer
from vitnas.report.tables import (
    FRONT_COLUMNS,
    TRIAL_COLUMNS,
    flops_bins,
    front_csv,
    front_rows,
    outcome_counts,
    trials_csv,
)

PATH = Path("results/small")


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_front_rows_compare_with_the_next_cheaper_member() -> None:
    run = run_of(
        PATH,
        trial(0, 70.0, 4_000_000),
        trial(1, 50.0, 1_000_000),
        trial(2, 40.0, 2_000_000),
        trial(3, 66.0, 2_000_000),
    )
    rows = front_rows(run)
    assert [row.trial.number for row in rows] == [1, 3, 0]
    assert [row.gain for row in rows] == [None, 16.0, 4.0]
    assert [row.cost for row in rows] == [None, 2.0, 2.0]
    assert [row.is_knee for row in rows] == [False, True, False]


def test_bins_count_every_trained_trial_once() -> None:
    run = invented_run(PATH, 120)
    bins = flops_bins(run)
    trained = [t for t in run.trials if t.outcome.is_trial]
    assert len(bins) == 6
    assert sum(row.started for row in bins) == len(trained)
    assert sum(row.front for row in bins) == len(run.front)
    assert sum(row.stopped for row in bins) == run.count(Outcome.STOPPED)
    assert all(row.started == row.complete + row.stopped + row.lost for row in bins)
    for row, after in pairwise(bins):
        assert row.high == after.low
        assert row.high / row.low == pytest.approx(after.high / after.low)


def test_equal_flops_make_one_bin_and_no_flops_none() -> None:
    (only,) = flops_bins(run_of(PATH, trial(0), trial(1, outcome=Outcome.STOPPED)))
    assert (only.low, only.high, only.started, only.stopped) == (1e6, 1e6, 2, 1)
    assert flops_bins(run_of(PATH, trial(0, flops=0))) == []


def test_trials_csv_has_every_candidate_and_what_was_drawn() -> None:
    run = run_of(
        PATH,
        trial(0, 50.0, params={"stages.0.depth": 2}),
        trial(1, None, outcome=Outcome.REFUSED, error='too dear, "very"\nindeed', config={}),
        trial(2, None, outcome=Outcome.DUPLICATE, duplicate_of=0, params={"gamma": 0.2}),
    )
    rows = read(trials_csv(run))
    assert list(rows[0]) == [*TRIAL_COLUMNS, "params.gamma", "params.stages.0.depth"]
    assert [row["outcome"] for row in rows] == ["complete", "refused", "duplicate"]
    assert [row["front"] for row in rows] == ["1", "0", "0"]
    assert rows[0]["curve_top1_percent"] == "25.0;40.0;50.0"
    assert rows[1]["error"] == 'too dear, "very"\nindeed'
    assert rows[1]["top1_percent"] == rows[1]["curve_top1_percent"] == ""
    assert rows[2]["duplicate_of"] == "0"
    assert rows[2]["params.gamma"] == "0.2"


def test_top1_in_float_has_a_column_where_top1_is_in_int8() -> None:
    run = run_of(PATH, trial(0, 50.0, float_top1=50.5))
    int8 = replace(run, space={"objectives": {"top1_int8": "maximize", "flops": "minimize"}})
    for table in (trials_csv, front_csv):
        assert read(table(int8))[0]["float_top1_percent"] == "50.5"
        assert "float_top1_percent" not in read(table(run))[0]


def test_front_csv_is_the_front() -> None:
    run = run_of(PATH, trial(0, 50.0), trial(1, 60.0, 3_000_000, test_top1=59.0), trial(2, 10.0))
    rows = read(front_csv(run))
    assert tuple(rows[0]) == (*FRONT_COLUMNS, "test_front")
    assert [row["trial"] for row in rows] == ["0", "1"]
    assert rows[1]["gain_points"] == "10.0"
    assert rows[1]["test_top1_percent"] == "59.0"


def test_outcomes_that_did_not_occur_are_left_out() -> None:
    run = run_of(PATH, trial(0), trial(1), trial(2, None, outcome=Outcome.OOM))
    assert outcome_counts(run) == [(Outcome.COMPLETE, 2), (Outcome.OOM, 1)]


def test_rows_tell_image_sizes_that_differ() -> None:
    """A space may search them, and then they are all that tells some networks apart."""
    large = tree() | {"img_size": 64}
    run = run_of(PATH, trial(0), trial(1, 60.0, 3_000_000, config=large), trial(2, config={}))
    plain, told = network_line(trial(0)), ["img_size 32", "img_size 64"]
    for table in (trials_csv, front_csv):
        rows = read(table(run))
        assert [row["network"] for row in rows[:2]] == [f"{plain} | {size}" for size in told]
        assert [row["network"] for row in rows[2:]] in ([], ["not recorded"])
        assert read(table(run_of(PATH, trial(0))))[0]["network"] == plain


def test_trees_of_another_version_are_named_not_fatal() -> None:
    assert network_line(trial(0, config={"wings": 2}, key="abc")) == "unreadable configuration abc"
    assert network_line(trial(0, config={})) == "not recorded"
    assert widest_mixer(trial(0, config={"wings": 2})) == "unknown"


def test_no_cell_of_a_table_is_a_formula() -> None:
    run = run_of(
        Path("r"),
        trial(0, 60.0, device="@SUM(1)", params={"a": "=1+1", "b": -0.5, "c": "+x"}),
        trial(1, None, outcome=Outcome.FAILED, error="=cmd|'/c calc'!A1", params={"c": "\t=1"}),
    )
    rows = list(csv.DictReader(io.StringIO(trials_csv(run))))
    names = ("device", "params.a", "params.b", "params.c")
    assert [rows[0][name] for name in names] == ["'@SUM(1)", "'=1+1", "-0.5", "'+x"]
    assert rows[1]["error"] == "'=cmd|'/c calc'!A1"
    assert rows[1]["params.c"] == "'\t=1"
