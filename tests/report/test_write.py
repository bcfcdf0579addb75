"""The whole report: files, self-containment, odd runs, floors, speed."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.report.runs import invented_run, run_of, trial
from vitnas.config.model import load_config
from vitnas.errors import RunError
from vitnas.records import Outcome, Run, TrialRecord
from vitnas.report import write_report
from vitnas.report.page import code_spans, render_pages
from vitnas.report.tables import trials_csv
from vitnas.sessions import Environment

FILES = {"trials.csv", "front.csv", "front.png", "report.md", "report.html"}


def html_of(run: Run) -> str:
    return render_pages(run, b"png").html


def without_plotly(html: str) -> str:
    return re.sub(r'(<script type="text/plain" id="plotly">).*?(</script>)', r"\1\2", html)


def test_a_report_is_these_files_and_nothing_else(tmp_path: Path) -> None:
    run = invented_run(tmp_path / "run", 60)
    write_report(run)
    assert {path.name for path in run.path.iterdir()} == FILES | {"configs"}
    names = {path.name for path in (run.path / "configs").iterdir()}
    assert names == {f"{member.number}.yaml" for member in run.complete}


def test_configs_read_back_and_say_where_they_come_from(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 40)
    write_report(run)
    for member in run.front:
        path = tmp_path / "configs" / f"{member.number}.yaml"
        assert load_config(path).to_tree() == member.config
        head = path.read_text().partition("\nname:")[0]
        assert (
            f"Trial {member.number} of {tmp_path.name}, space hybrid_cifar, on the front." in head
        )
        assert f"{member.flops:,} FLOPs" in head
        assert "data cifar10" in head
        assert "git 40a507c81f2e" in head


def test_writing_twice_changes_no_config(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 10)
    write_report(run)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "configs").iterdir()}
    write_report(run)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_page_needs_nothing_from_outside() -> None:
    page = without_plotly(html_of(invented_run(Path("results/small"), 60)))
    assert not re.search(r"https?://|//cdn|@import|url\(", page)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(
        source.startswith(("data:image/png", "configs/")) or "." in source for source in sources
    )


def test_both_pages_tell_the_same_front() -> None:
    run = invented_run(Path("results/small"), 60)
    assert run.knee is not None
    pages = render_pages(run, b"")
    for member in run.front:
        assert f'id="trial-{member.number}"' in pages.html
        assert f"[{member.number}](configs/{member.number}.yaml)" in pages.markdown
        assert f"{member.top1:.2f}" in pages.html
    assert f"vitnas export results/small --trial {run.knee.number} --to" in pages.markdown


def test_gains_below_the_error_are_marked() -> None:
    run = run_of(Path("r"), trial(0, 60.0), trial(1, 60.1, 2_000_000), trial(2, 80.0, 3_000_000))
    pages = render_pages(run, b"")
    assert "≈ +0.10" in pages.markdown
    assert "≈ +19.90" not in pages.markdown
    assert pages.html.count('class="unsure"') == 1


def test_code_in_a_sentence() -> None:
    assert str(code_spans("a < b: `--replicates 3` does")) == (
        "a &lt; b: <code>--replicates 3</code> does"
    )


def test_hostile_text_stays_text() -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)> | `x`"
    session = {"command": evil, "versions": {evil: evil}, "hardware": {"cpu": evil}}
    run = run_of(
        Path("r"),
        trial(0, 60.0, device=evil, key=evil, config={"name": evil}),
        trial(1, None, outcome=Outcome.FAILED, error=evil),
        name=evil,
        space={"name": evil, "limits": {"flops": {"max": evil}}},
        environment={"sessions": [session], "data": {"name": evil}, "proxy": {evil: evil}},
    )
    page = html_of(run)
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_model_files_are_not_written_through_a_link(tmp_path: Path) -> None:
    theirs = tmp_path / "etc"
    theirs.mkdir()
    (theirs / "0.yaml").write_text("mine")
    run = run_of(tmp_path / "run", trial(0))
    run.path.mkdir()
    (run.path / "configs").symlink_to(theirs)
    with pytest.raises(RunError, match="configs: is a link"):
        write_report(run)
    assert (theirs / "0.yaml").read_text() == "mine"


def test_a_pipe_in_the_place_of_a_model_file_is_replaced(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", trial(0))
    (run.path / "configs").mkdir(parents=True)
    os.mkfifo(run.path / "configs" / "0.yaml")
    write_report(run)
    assert (run.path / "configs" / "0.yaml").is_file()


@pytest.mark.parametrize("name", ["report.html", "trials.csv", "front.png"])
def test_the_file_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    run = run_of(tmp_path / "run", trial(0))
    (run.path / name).mkdir(parents=True)
    with pytest.raises(RunError, match=f"{name}: the report cannot be written"):
        write_report(run)


def test_hostile_text_stays_text_in_markdown() -> None:
    evil = "`</code><script>alert(1)</script>|x"
    run = run_of(
        Path("r; touch PWNED #"),
        trial(0, 60.0, device=evil),
        trial(1, None, outcome=Outcome.FAILED, error=evil),
        space={"name": evil},
        environment={"sessions": [{"command": evil, "device": evil}], "data": {"name": evil}},
    )
    lines = render_pages(run, b"").markdown.splitlines()
    raw = [line for line in lines if "<script>" in line]
    assert len(raw) == 2, "the error and the command, each in its code span"
    assert all("`'</code><script>" in line for line in raw)
    assert "Export one: `vitnas export 'r; touch PWNED" in "\n".join(lines).replace("#'", "")


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


def odd_runs() -> dict[str, Run]:
    failed = trial(0, None, outcome=Outcome.FAILED, error="worker lost", flops=0, config={})
    path = Path("results/odd")
    return {
        "empty": run_of(path),
        "bare": Run(path, "bare", (trial(0),), {}, Environment(), 10),
        "failed only": run_of(path, failed),
        "refused only": run_of(path, trial(0, None, outcome=Outcome.REFUSED, error="too dear")),
        "running": run_of(path, trial(0, 40.0, outcome=Outcome.RUNNING)),
        "stopped only": run_of(path, trial(0, 40.0, outcome=Outcome.STOPPED)),
        "one": run_of(path, trial(0)),
        "two": run_of(path, trial(0), trial(1, 60.0, 2_000_000)),
        "all alike": run_of(path, *(trial(number) for number in range(9))),
        "all wrong": run_of(path, *(trial(n, 0.0, 10**n) for n in range(5))),
        "all right": run_of(path, *(trial(n, 100.0, 10 ** (9 - n)) for n in range(5))),
        "nan": run_of(path, trial(0, float("nan")), trial(1, 30.0)),
        "no curve": run_of(path, trial(0, None), trial(1, 30.0, 0)),
        "odd facts": run_of(
            path,
            trial(0),
            space={"limits": None},
            environment={"sessions": [{"hardware": {}}], "data": {"name": None}, "proxy": {}},
        ),
    }


@pytest.mark.parametrize("name", odd_runs())
def test_odd_runs_have_a_report(name: str, tmp_path: Path) -> None:
    run = odd_runs()[name]
    run = Run(**{**vars(run), "path": tmp_path / "run"})
    write_report(run)
    assert {path.name for path in run.path.iterdir()} >= FILES
    assert not re.search(r"\bnan\b|\bNone\b", without_plotly((run.path / "report.md").read_text()))


records = st.builds(
    trial,
    st.integers(0, 10**6),
    st.none() | st.floats(0, 100) | st.just(float("nan")),
    st.integers(0, 10**12),
    outcome=st.sampled_from(Outcome),
    test_top1=st.none() | st.floats(0, 100),
    seconds=st.none() | st.floats(0, 1e7),
    config=st.sampled_from([{}, {"name": "x"}, trial(0).config]),
    error=st.none() | st.text(),
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(records, max_size=12, unique_by=lambda record: record.number))
def test_any_run_has_pages(trials: list[TrialRecord]) -> None:
    run = run_of(Path("results/any"), *trials)
    assert render_pages(run, b"").html.endswith("</html>\n")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        RunError, match=r"file/run/front.png: the report cannot be written"
    ) as caught:
        write_report(invented_run(tmp_path / "file" / "run", 5))
    assert "\n" not in str(caught.value)


def test_a_report_needs_neither_torch_nor_ray(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.report.runs import invented_run; "
        "from vitnas.report import write_report; "
        f"write_report(invented_run(Path({str(tmp_path)!r}), 20)); "
        "print([name for name in ('torch', 'ray', 'optuna', 'timm') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_thousand_trials_stay_a_small_page(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 1000)
    write_report(run)
    assert (tmp_path / "report.html").stat().st_size < 4e6
