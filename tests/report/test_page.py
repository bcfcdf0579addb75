"""report.html and report.md: one front, nothing from outside, hostile text stays text."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.report.runs import invented_run, run_of, trial
from vitnas.records import Outcome, TrialRecord
from vitnas.report.page import code_spans, render_pages, template
from vitnas.run import Run


def html_of(run: Run) -> str:
    return render_pages(run, b"png").html


def without_plotly(html: str) -> str:
    return re.sub(r'(<script type="text/plain" id="plotly">).*?(</script>)', r"\1\2", html)


def test_the_page_needs_nothing_from_outside() -> None:
    page = without_plotly(html_of(invented_run(Path("results/small"), 60)))
    assert not re.search(r"https?://|//cdn|@import|url\(", page)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(
        source.startswith(("data:image/png", "configs/", "#")) or "." in source
        for source in sources
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


def test_where_all_trainings_failed_nothing_is_said_to_be_untrained(tmp_path: Path) -> None:
    run = run_of(tmp_path, trial(0, None, outcome=Outcome.FAILED, error="no memory"))
    page = render_pages(run, b"").html
    assert "Nothing has been trained" not in page
    assert "No network has a top-1 yet, so there is nothing to draw." in page


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_colour(outcome: Outcome) -> None:
    css = template("report.css")
    assert re.search(rf"^\.{outcome.value}\b[^{{]*{{ background: var\(--(\w+)\)", css, re.MULTILINE)
    assert f"  --{outcome.value}: #" in css


def test_a_timeout_is_among_the_lost(tmp_path: Path) -> None:
    run = run_of(tmp_path, trial(0, 10.0, outcome=Outcome.TIMEOUT, error="too long"), trial(1))
    pages = render_pages(run, b"")
    for page in (pages.markdown, pages.html):
        assert "Lost: failed, diverged, out of memory or out of time." in page


def test_one_choice_that_cannot_be_told_is_no_plural(tmp_path: Path) -> None:
    run = run_of(tmp_path, trial(0))
    axis = {"name": "stem.act", "values": [("relu", "+0.1", "-0.3 to +0.5")], "members": 3}
    axis |= {"gain": "0.2", "gain_interval": "-0.1 to +0.5", "matched": "–"}
    found = {"effects": [], "unclear_effects": [axis], "doubling": "+0.4"}
    found |= dict.fromkeys(("no_model", "paired_hint", "paired_effects", "unjudged"), "")
    with patch("vitnas.report.summary.effect_views", return_value=found):
        assert "1 choice whose values cannot be told apart" in render_pages(run, b"").html


def test_each_head_of_a_table_says_what_it_heads(tmp_path: Path) -> None:
    heads = re.findall(r"<th\b[^>]*>", render_pages(invented_run(tmp_path, 40), b"").html)
    assert heads
    assert all('scope="col"' in head for head in heads)
