"""The page on several runs: whole, offline, and hostile names stay text."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path

import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from tests.report.test_compared import A, B, small
from tests.report.test_page import without_plotly
from vitnas.errors import RunError
from vitnas.report.compared import compare
from vitnas.report.compared_page import compared_html, fronts_figure, is_compared, write_compared


def test_the_page_is_whole_and_needs_nothing_from_outside(tmp_path: Path) -> None:
    file = tmp_path / "compared.html"
    write_compared(compare([small(A, 9.0), small(B, num_trials=9)]), file)
    page = file.read_text()
    assert is_compared(file.read_bytes()[:4096])
    assert not is_compared(b"<html><title>mine</title>")
    text = without_plotly(page)
    assert not re.search(r"https?://|//cdn|@import|url\(|src=", text)
    for place in ("front_flops", "epochs_plot", "seconds_plot"):
        assert f'id="{place}"' in text
    for words in ("At equal FLOPs the front of a", "trials asked for", "has not ended"):
        assert words in text
    figures = json.loads(text.partition('id="figures">')[2].partition("</script>")[0])
    assert set(figures) == {"front_flops", "epochs_plot", "seconds_plot"}


def test_a_run_on_a_gpu_has_gpu_hours() -> None:
    told = deepcopy(ENVIRONMENT)
    told["sessions"] = [told["sessions"][0] | {"gpus_per_trial": 0.5}]
    page = compared_html(compare([small(A, environment=told), small(B)]))
    figures = json.loads(page.partition('id="figures">')[2].partition("</script>")[0])
    (line,) = figures["gpu_plot"]["data"]
    assert line["name"] == "a"
    assert line["x"][-1] == pytest.approx(4 * 6.25 / 60, abs=1e-3)


def test_each_front_has_its_colour_line_and_mark() -> None:
    figure = fronts_figure(compare([small(A, 2.0), small(B)]), "flops")
    assert figure is not None
    lines = [trace for trace in figure.data if trace["mode"] == "lines"]
    marks = [trace for trace in figure.data if trace["mode"] == "markers"]
    assert len({trace["line"]["color"] for trace in lines}) == 2
    assert len({trace["line"]["dash"] for trace in lines}) == 2
    assert len({trace["marker"]["symbol"] for trace in marks}) == 2
    assert [trace["name"] for trace in marks] == ["a", "b"]


def test_runs_without_networks_have_a_page() -> None:
    page = compared_html(compare([run_of(A), run_of(B)]))
    assert "there is nothing to draw" in page
    assert page.endswith("</html>\n")
    alone = compared_html(compare([run_of(A, trial(0, 50.0)), run_of(B)]))
    assert "b has no network that was trained to the end" in alone


def test_hostile_names_stay_text() -> None:
    evil = Path("</script><script>alert(1)<") / "<img src=x onerror=alert(1)>"
    page = compared_html(compare([small(evil), small(B, name="<b>")]))
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    found = compare([small(A), small(B)])
    (tmp_path / "none").write_text("a file, not a folder")
    with pytest.raises(RunError, match="cannot be written"):
        write_compared(found, tmp_path / "none" / "compared.html")
