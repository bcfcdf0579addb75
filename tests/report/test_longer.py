"""Long trainings in a report: the agreement with its ranking, the table, the marks."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kendalltau

from tests.report.runs import run_of, trial
from tests.test_longer import training
from vitnas.longer import FILE_NAME, add
from vitnas.report.longer import LEAST, agreement_of, agreement_text, long_rows
from vitnas.report.page import render_pages
from vitnas.report.tables import front_csv, trials_csv
from vitnas.report.terminal import front_text
from vitnas.run import Run

AFTER = [60.0, 64.0, 62.0, 66.0, 70.0, 68.0]


def run_with(folder: Path, after: list[float], **more: Any) -> Run:
    """Eight trials that rise with FLOPs; the first ones are trained long."""
    trials = [trial(n, 50.0 + 2 * n, 10 ** (n + 3)) for n in range(8)]
    for number, top1 in enumerate(after):
        key = trials[number].key
        add(folder, training(number, key=key, top1=top1 + 1, test_top1=top1, **more))
    return run_of(folder, *trials)


def test_a_run_without_long_trainings_says_nothing(tmp_path: Path) -> None:
    run = run_with(tmp_path, [])
    assert agreement_of(run) is None
    page = render_pages(run, b"").html
    assert 'href="#long"' not in page
    assert "long_epochs" not in trials_csv(run)


def test_the_agreement_is_kendalls_tau(tmp_path: Path) -> None:
    run = run_with(tmp_path, AFTER)
    found = agreement_of(run)
    assert found is not None
    assert found.tau is not None
    before = [one.estimate for one in run.complete[: len(AFTER)]]
    assert found.tau.value == pytest.approx(kendalltau(before, AFTER).statistic)
    assert found.tau.low < found.tau.value <= found.tau.high
    assert (found.num_networks, found.on_test, found.epochs) == (6, True, 30)
    text = agreement_text(found)
    assert text.startswith("6 networks were trained long, for 30 epochs (small). Kendall's tau")
    assert "on the test images after the long training is 0.73 (95 % interval " in text
    assert "Ranking by FLOPs alone gives 0.73." in text


def test_a_network_trained_at_two_learning_rates_counts_once(tmp_path: Path) -> None:
    run_with(tmp_path, AFTER)
    run = run_with(tmp_path, [top1 - 1 for top1 in AFTER[:2]], lr=0.016)
    found = agreement_of(run)
    assert found is not None
    assert (found.num_networks, found.num_others) == (len(AFTER), 0)
    (tmp_path / "once").mkdir()
    once = agreement_of(run_with(tmp_path / "once", AFTER))
    assert once is not None
    assert found.tau == once.tau
    called = [row["called"] for row in long_rows(run)]
    assert called[:4] == ["trial 0", "trial 0 at lr 0.016", "trial 1", "trial 1 at lr 0.016"]


def test_a_perfect_order_has_no_interval(tmp_path: Path) -> None:
    """Every resample is in perfect order, too; five networks do not prove a tau of 1."""
    text = agreement_text(agreement_of(run_with(tmp_path, sorted(AFTER[:LEAST]))))
    assert "is 1.00 (no interval: a bootstrap of networks in perfect order shows none)." in text
    assert "1.00 to 1.00" not in text


@pytest.mark.parametrize("number", [1, LEAST - 1])
def test_few_networks_are_too_few_to_say(tmp_path: Path, number: int) -> None:
    text = agreement_text(agreement_of(run_with(tmp_path, AFTER[:number])))
    assert "too few to say how well the short trainings ranked them (5 can tell)." in text
    assert "tau" not in text


def test_equal_results_have_no_order(tmp_path: Path) -> None:
    assert "They have no order" in agreement_text(agreement_of(run_with(tmp_path, [60.0] * 6)))


def test_other_settings_and_damaged_lines_are_named(tmp_path: Path) -> None:
    run_with(tmp_path, AFTER[:2], setting="1" * 12, epochs=300)
    with (tmp_path / FILE_NAME).open("a") as file:
        file.write("half\n")
    run = run_with(tmp_path, AFTER)
    found = agreement_of(run)
    assert found is not None
    assert (found.num_networks, found.epochs, found.num_others) == (6, 30, 2)
    text = agreement_text(found)
    assert "2 other long trainings have another recipe or other images" in text
    assert text.endswith("Not counted in long.jsonl: line 3 (is damaged).")
    assert "line 3 (is damaged)" in render_pages(run, b"").markdown


def test_seeds_are_averaged(tmp_path: Path) -> None:
    run_with(tmp_path, [60.0])
    run = run_with(tmp_path, [70.0], seed=1)
    (row,) = long_rows(run)
    assert (row["top1"], row["test"], row["trainings"]) == ("66.00", "65.00", "2")
    found = agreement_of(run)
    assert found is not None
    assert found.num_networks == 1


def test_tables_mark_what_was_trained_long(tmp_path: Path) -> None:
    run = run_with(tmp_path, AFTER[:2])
    pages = render_pages(run, b"")
    assert pages.html.count('<a class="tag" href="#long">long</a>') == 2
    assert '<h3 id="long">' in pages.html
    assert "](configs/1.yaml) long |" in pages.markdown
    assert "](configs/2.yaml) long |" not in pages.markdown
    assert "trained long: 2 networks (trial 0, trial 1)" in front_text(run)
    (tmp_path / "one").mkdir()
    one = run_with(tmp_path / "one", AFTER[:1])
    assert "trained long: 1 network (trial 0)" in front_text(one)
    for text in (trials_csv(run), front_csv(run)):
        rows = {row["trial"]: row for row in csv.DictReader(io.StringIO(text))}
        assert (rows["1"]["long_top1_percent"], rows["1"]["long_test_top1_percent"]) == (
            "65.0",
            "64.0",
        )
        assert (rows["1"]["long_epochs"], rows["1"]["long_trainings"]) == ("30", "1")
        assert rows["2"]["long_epochs"] == ""
