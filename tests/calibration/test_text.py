"""The verdict and the table."""

from __future__ import annotations

import pytest

from tests.calibration.made_up import judged
from vitnas.calibration.agreement import Tau
from vitnas.calibration.text import (
    calibration_markdown,
    calibration_text,
    percent,
    tau_text,
    verdict,
)


def test_the_verdict_names_what_to_search_with() -> None:
    found = judged().model_copy(update={"best": "proxy", "cheapest": "1 epoch"})
    assert verdict(found).startswith("Search with '1 epoch', at 14.3 % of a long training: of 16 ")
    assert "cannot be told from the best, 'proxy'" in verdict(found)
    alone = found.model_copy(update={"cheapest": "proxy"})
    assert "cannot be told" not in verdict(alone)
    assert "size alone (" in verdict(alone)


def test_it_says_so_when_nothing_beats_size() -> None:
    found = judged().model_copy(update={"best": "proxy", "cheapest": "FLOPs"})
    assert verdict(found).startswith("Nothing here ranks networks of similar FLOPs reliably better")


def test_a_size_that_is_the_best_is_not_compared_with_itself() -> None:
    found = judged().model_copy(update={"best": "FLOPs", "cheapest": "FLOPs"})
    assert verdict(found).startswith("Nothing here ranks networks of similar FLOPs better than")
    assert "FLOPs alone has the highest tau within FLOPs bins, " in verdict(found)
    assert "cannot be told" not in verdict(found)


def test_one_network_is_no_plural() -> None:
    found = judged().model_copy(update={"lost": 1})
    first = found.proxies[0].model_copy(update={"missing": 1})
    text = calibration_text(found.model_copy(update={"proxies": (first, *found.proxies[1:])}))
    assert "no figure of 1 network\n" in text.replace("  ", "\n")
    assert "1 network could not be trained long to the end and is left out." in text


def test_where_all_resamples_agree_there_is_no_interval() -> None:
    """As where a score ranks a few networks perfectly."""
    assert tau_text(Tau(0.62, 0.41, 0.78)) == "0.62 (0.41 to 0.78)"
    assert tau_text(Tau(1.0, 1.0, 1.0)) == "1.00 (no interval)"


def test_the_verdict_comes_first_and_every_proxy_has_a_row() -> None:
    found = judged()
    for text in (calibration_text(found), calibration_markdown(found)):
        lines = text.splitlines()
        assert lines[0] == verdict(found)
        for name in (*(one.name for one in found.proxies), "ceiling"):
            assert any(line.removeprefix("| ").startswith(name) for line in lines), name


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0"), (0.000123, "0.012"), (0.0123, "1.2"), (0.333, "33.3"), (1.0, "100")],
)
def test_shares_have_two_or_three_digits(share: float, text: str) -> None:
    assert percent(share) == text
