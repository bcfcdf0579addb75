"""Reports and comparisons in a real browser: plots are drawn, nothing complains or goes out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.engine.conftest import make_space
from tests.report.browser import CHROMIUM, DARK, Visit, brightness, browse, visit
from tests.report.runs import invented_run
from tests.report.test_effects import run as made_up
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.report import write_report
from vitnas.report.compared import compare
from vitnas.report.compared_page import write_compared
from vitnas.report.effects_text import effect_views
from vitnas.run import Run

PLOTS = ("front_plot", "curves_plot", "volume_plot")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on PATH"),
]


def _answer(script: str, folder: Path, trials: int) -> Any:
    """What a script on the report of an invented run leaves in the page's title, as JSON."""
    write_report(invented_run(folder, trials))
    page = folder / "asked.html"
    page.write_text((folder / "report.html").read_text() + script)
    shown, _ = browse(page, folder / "profile", "--dump-dom")
    return json.loads(unescape(re.findall(r"<title>(.*?)</title>", shown)[0]))


def _between(dom: str, plot: str) -> str:
    """The DOM from the element of `plot` to the end of its figure."""
    return dom.partition(f'id="{plot}"')[2].partition("</figure>")[0]


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("browser")
    options = SearchOptions(trials=3, gpus_per_trial=0.0, seed=1, backend="serial", baselines=False)
    run = run_search(make_space(), folder / "run", options)
    write_report(run)
    return visit(folder / "run" / "report.html", folder)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("compared")
    runs = [invented_run(folder / name, 40, seed) for seed, name in enumerate("ab")]
    timed = [
        replace(run, trials=tuple(replace(one, seconds=1.0) for one in run.trials)) for run in runs
    ]
    write_compared(compare(timed), folder / "compared.html")
    return visit(folder / "compared.html", folder)


def test_a_comparison_is_drawn_without_complaint_or_request(compared: Visit) -> None:
    for plot, lines in (("front_flops", 4), ("epochs_plot", 2), ("seconds_plot", 2)):
        drawn = _between(compared.dom, plot)
        assert '<svg class="main-svg"' in drawn, plot
        assert drawn.count('class="trace ') == lines, plot
    assert compared.console == []
    assert compared.requests == []
    _has_something_to_see(compared.picture)


@pytest.mark.parametrize("page", ["report", "compared"])
def test_in_the_dark_pages_and_plots_are_dark(
    page: str, visited: Visit, compared: Visit, tmp_path: Path
) -> None:
    light = {"report": visited, "compared": compared}[page]
    dark = visit(light.page, tmp_path, DARK)
    assert dark.console == []
    assert dark.requests == []
    _has_something_to_see(dark.picture)
    assert dark.dom.count('<svg class="main-svg"') == light.dom.count('<svg class="main-svg"') > 0
    assert brightness(light.picture) > 200
    assert brightness(dark.picture) < 60


def test_the_plots_are_drawn(visited: Visit) -> None:
    for plot in PLOTS:
        drawn = _between(visited.dom, plot)
        assert '<svg class="main-svg"' in drawn, plot
        assert "<img" not in drawn, plot
        assert 'class="trace' in drawn, plot
    points = _between(visited.dom, "front_plot").count('class="point"')
    assert points in (3, 4)  # three networks, and a ring around the knee where all are on the front


def test_the_console_stays_empty(visited: Visit) -> None:
    assert visited.console == []


def test_nothing_is_requested_from_outside(visited: Visit) -> None:
    assert visited.requests == []


def test_there_is_something_to_see(visited: Visit) -> None:
    _has_something_to_see(visited.picture)


def _has_something_to_see(file: Path) -> None:
    with Image.open(file) as picture:
        assert picture.size == (1200, 2400)
        colours = picture.convert("RGB").getcolors(maxcolors=1 << 24)
    assert colours is not None
    assert len(colours) > 100
    assert max(count for count, _ in colours) < 0.95 * 1200 * 2400


MEASURE = """
<body style="margin: 0"><iframe style="border: 0; width: 390px; height: 9000px" src="PAGE"></iframe>
<script>addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  const right = (part) => part.getBoundingClientRect().right;
  const share = (bar) => bar.getBoundingClientRect().width / bar.parentElement.clientWidth;
  document.title = JSON.stringify({
    cells: Math.max(...[...page.querySelectorAll("td, dd, pre")].map(right)),
    bars: [...page.querySelectorAll(".bar")].map((it) => [parseFloat(it.style.width), share(it)]),
  });
})</script>
"""


def on_a_phone(run: Run, folder: Path) -> Any:
    """How far the cells of the run's report reach on a phone, and how long its bars are."""
    write_report(replace(run, path=folder))
    page = folder / "phone.html"
    page.write_text(MEASURE.replace("PAGE", (folder / "report.html").as_uri()))
    shown, _ = browse(page, folder / "profile", "--dump-dom", "--allow-file-access-from-files")
    return json.loads(unescape(shown.partition("<title>")[2].partition("</title>")[0]))


def test_nothing_is_cut_off_on_a_phone_and_bars_are_as_long_as_they_say(tmp_path: Path) -> None:
    found = on_a_phone(invented_run(tmp_path, 200), tmp_path)
    assert 0 < found["cells"] <= 390
    assert len(found["bars"]) == 6
    assert min(width for width, _ in found["bars"]) < 30
    for width, share in found["bars"]:
        assert 100 * share == pytest.approx(width, abs=0.5)


def test_what_each_choice_buys_is_not_cut_off_on_a_phone_either(tmp_path: Path) -> None:
    assert effect_views(made_up())["effects"]
    assert 0 < on_a_phone(made_up(), tmp_path)["cells"] <= 390


FILTER = """
<script>setTimeout(() => {
  const plot = document.getElementById("front_plot"), field = document.getElementById("filter");
  const texts = () => plot.data.filter((trace) => trace.mode === "markers" && trace.text)
    .flatMap((trace) => trace.x.length === trace.text.length ? trace.text : ["unequal"]);
  const rows = () => [...document.querySelectorAll("table.front tbody tr")]
    .filter((row) => row.checkVisibility()).map((row) => row.textContent);
  const found = { all: [texts().length, rows().length] };
  field.value = "SKA";
  field.dispatchEvent(new Event("input"));
  const said = document.getElementById("found").value;
  Object.assign(found, { texts: texts(), rows: rows(), said });
  const numbers = texts().map((text) => text.match(/\\d+/)[0]);
  field.value = `trial ${numbers[0]}, trial ${numbers[1]}`;
  field.dispatchEvent(new Event("input"));
  Object.assign(found, { asked: numbers.slice(0, 2), one: texts() });
  field.value = "";
  field.dispatchEvent(new Event("input"));
  found.again = [texts().length, rows().length];
  found.roles = [plot.role, document.getElementById("volume_plot").role];
  document.title = JSON.stringify(found);
}, 3000)</script>
"""


def test_the_filter_leaves_the_networks_that_were_asked_for(tmp_path: Path) -> None:
    found = _answer(FILTER, tmp_path, 120)
    assert 0 < len(found["texts"]) < found["all"][0]
    assert 0 < len(found["rows"]) < found["all"][1]
    for text in (*found["texts"], *found["rows"]):
        assert re.search(r"\bska\b", text), "cska is another mixer"
    assert found["said"] == f"{len(found['rows'])} of {found['all'][1]} rows of the tables"
    assert {re.findall(r"trial (\d+)", text)[0] for text in found["one"]} == {*found["asked"]}
    assert found["again"] == found["all"]
    assert found["roles"] == ["application", "application"]


KEYS = """
<script>setTimeout(() => {
  const plot = document.getElementById("front_plot"), spoken = plot.nextElementSibling;
  plot.focus();
  const found = { focused: document.activeElement.id, said: [], shown: [] };
  const press = (key) => {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
    plot.dispatchEvent(event);
    found.said.push(spoken.value);
    found.shown.push(plot.querySelectorAll(".hovertext").length);
    return event.defaultPrevented;
  };
  const keys = "ArrowRight ArrowRight ArrowLeft ArrowLeft End ArrowRight Home Tab";
  found.taken = keys.split(" ").map(press);
  document.title = JSON.stringify(found);
}, 3000)</script>
"""


def test_arrow_keys_go_from_mark_to_mark(tmp_path: Path) -> None:
    found = _answer(KEYS, tmp_path, 40)
    assert found["focused"] == "front_plot"
    first, second, again, still, last, end, home, after = found["said"]
    assert first == again == still == home == after
    assert last == end
    assert len({first, second, last}) == 3
    assert "top-1" in first
    assert "<" not in first
    assert found["shown"] == [1] * 8
    assert found["taken"] == [True] * 7 + [False]


PAPER = """
<script>setTimeout(() => {
  const box = (part) => part.getBoundingClientRect();
  document.title = JSON.stringify([...document.querySelectorAll("figure")].map((figure) => {
    const plot = box(figure.querySelector(".plot"));
    const title = box(figure.querySelector(".xtitle"));
    const caption = figure.querySelector("figcaption");
    const drawing = box(figure.querySelector(".main-svg"));
    return [title.bottom, caption ? box(caption).top : plot.bottom, drawing.width, plot.width];
  }));
}, 3000)</script>
"""


def test_on_paper_tables_are_tables_and_plots_are_as_wide_as_the_page(tmp_path: Path) -> None:
    """The pages are counted in a PDF; the boxes are those of the print styles in a narrow frame,
    which comes after the plots have been drawn for a wide screen."""
    write_report(invented_run(tmp_path, 300))
    report, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
    for width in (1000, 1400):
        size = (f"--window-size={width},2400", f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
        browse(report, tmp_path / f"profile {width}", *size)
        assert len(re.findall(rb"/Type /Page\b", pdf.read_bytes())) <= 8
    page = tmp_path / "paper.html"
    paper = report.read_text().replace("@media print", "@media (max-width: 5000px)")
    narrow = '<script>setTimeout(() => document.body.style.width = "690px", 2000)</script>'
    page.write_text(paper + narrow + PAPER)
    shown, _ = browse(page, tmp_path / "paper", "--dump-dom")
    found = json.loads(unescape(re.findall(r"<title>(.*?)</title>", shown)[0]))
    assert len(found) == 4
    for title, caption, drawn, plot in found:
        assert title <= caption + 1
        assert plot > 600
        assert drawn == pytest.approx(plot, abs=1)


EACH = """
<script>setTimeout(() => {
  const found = [...document.querySelectorAll(".plot")].map((plot) => {
    const spoken = plot.nextElementSibling;
    const said = ["Home", "ArrowRight", "ArrowRight", "End"].map((key) => {
      plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      return spoken.value;
    });
    return [plot.id, plot.tabIndex, said, plot.querySelectorAll(".hovertext").length];
  });
  document.title = JSON.stringify(found);
}, 3000)</script>
"""


def test_tab_reaches_each_plot_and_what_it_says_is_words(tmp_path: Path) -> None:
    found = _answer(EACH, tmp_path, 40)
    assert [name for name, *_ in found] == [*PLOTS, "epochs_plot"]
    said = {name: texts for name, _, texts, _ in found}
    for name, index, texts, labels in found:
        assert index == 0, name
        assert labels == 1, name
        assert len(set(texts)) >= 3, name
        assert not re.search("[▁-█\u2009<]", "".join(texts)), name
    assert re.fullmatch(r"trial \d+: [\d.]+ % after epoch 1", said["curves_plot"][0])
    assert re.fullmatch(r"[\d.]+ % after trial \d+", said["volume_plot"][-1])
    assert re.fullmatch(r"100.0 % after \d+ epochs trained, trial \d+", said["epochs_plot"][-1])
    assert "tokens" in said["front_plot"][0]


def test_a_faulty_page_is_found_out(tmp_path: Path) -> None:
    """The checks above can fail: an image from outside, an uncaught error, no plot."""
    page = tmp_path / "page.html"
    page.write_text(
        '<img src="http://example.invalid/x.png"><script>throw new Error("oops")</script>'
    )
    found = visit(page, tmp_path)
    assert set(found.requests) == {"http://example.invalid/x.png"}
    assert any("oops" in line for line in found.console)
    assert "main-svg" not in found.dom
