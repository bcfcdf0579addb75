"""How a check is run and judged; the figures themselves are made small."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from vitnas.errors import DeviceError
from vitnas.gpucheck import check
from vitnas.gpucheck.check import (
    GOALS,
    GpuCheck,
    Reading,
    check_gpu,
    checks_in,
    ending,
    is_met,
    row_text,
)


def test_every_figure_has_its_row_and_the_other_way_round() -> None:
    from vitnas.gpucheck.figures import FIGURES

    assert [target.figure for target in GOALS] == list(FIGURES)


def test_without_a_card_only_a_dry_run_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DeviceError, match="--dry takes the CPU"):
        check_gpu(False, print)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("print('{\"seconds\": 2.5}')", {"seconds": 2.5}),
        ("print('no figures')", "it printed no figures"),
        ("raise ValueError('too\\x1b small')", "ValueError: too"),
        ("raise SystemExit(3)", "exit 3"),
        ("import time; time.sleep(60)", "no end within 1 s"),
    ],
)
def test_a_figure_that_fails_is_one_line(
    code: str, outcome: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_LIMIT_S", 1.0 if "sleep" in code else 60.0)
    found = check._measured([sys.executable, "-c", code], time.monotonic() + 60)
    if isinstance(outcome, dict):
        assert (found.found, found.error) == (outcome, "")
    else:
        assert not found.found
        assert outcome in found.error
        assert found.error.isprintable()


def test_what_a_figure_has_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks that share the card would go on beside the next figure."""
    monkeypatch.setattr(check, "_LIMIT_S", 2.0)
    late = f"import time; time.sleep(4); open({str(tmp_path / 'late')!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {late!r}])"
    found = check._measured([sys.executable, "-c", code], time.monotonic() + 60)
    assert found.error == "no end within 2 s"
    time.sleep(4)
    assert not list(tmp_path.iterdir())


def test_the_whole_check_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_WHOLE_S", 0.5)
    lines: list[str] = []
    checked = check_gpu(True, lines.append)
    assert checked.failed == [goal.figure for goal in GOALS]
    assert lines[-1].endswith("no end within 0 s")


def test_all_figures_are_asked_for_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def measured(command: Sequence[str], until: float) -> Reading:
        asked.append(command)
        return Reading({"seconds": 7.0}) if "proxy" in command else Reading(error="no memory")

    monkeypatch.setattr(check, "_measured", measured)
    lines: list[str] = []
    checked = check_gpu(True, lines.append)
    assert [command[3:] for command in asked] == [[t.figure, "--dry"] for t in GOALS]
    assert lines[1 + [goal.figure for goal in GOALS].index("proxy")].endswith("s: runs")
    assert lines[1].endswith("failed: no memory")
    assert checked.readings["proxy"].found == {"seconds": 7.0}


def test_a_target_is_met_from_its_side() -> None:
    goals = {goal.figure: goal for goal in GOALS}
    seconds, ratio = goals["proxy"], goals["shared"]
    assert is_met(seconds, 7.9)
    assert not is_met(seconds, 8.1)
    assert is_met(ratio, 2.1)
    assert not is_met(ratio, 1.9)
    assert is_met(ratio, None) is None
    assert row_text(ratio, Reading({"ratio": 2.5})).endswith("2.5 (at least 2; met)")


def test_the_tests_that_failed_are_named() -> None:
    said = "....F\nFAILED tests/a/test_b.py::test_c[1] - AssertionError\n== 1 failed, 4 passed ==\n"
    assert ending(said) == "1 failed, 4 passed; test_c[1]"
    assert ending("5 passed in 3 s\n") == "5 passed in 3 s"
    assert ending("") == ""


def test_files_that_are_no_checks_are_passed_over(tmp_path: Path) -> None:
    whole = GpuCheck("NVIDIA H200", {}, {"proxy": Reading({"seconds": 5.0})})
    assert whole.file_name == "nvidia-h200.json"
    (tmp_path / whole.file_name).write_text(json.dumps(whole.to_json()))
    (tmp_path / "torn.json").write_text('{"format": 1')
    (tmp_path / "other.json").write_text('{"format": 2, "readings": {}}')
    (tmp_path / "list.json").write_text("[]")
    (found,) = checks_in(tmp_path)
    assert found["card"] == "NVIDIA H200"
