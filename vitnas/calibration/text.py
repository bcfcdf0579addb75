"""A calibration in words: the verdict in one sentence, and the table."""

from __future__ import annotations

from collections.abc import Iterator

from vitnas.calibration.agreement import Tau
from vitnas.calibration.result import SAID, Calibration, ProxyFigures
from vitnas.columns import columns
from vitnas.words import plural

_HEADS = ("proxy", "cost %", "tau overall", "tau within FLOPs bins", "what it is")


def verdict(found: Calibration) -> str:
    """What to search with, in one sentence; plainly so where nothing beats size."""
    chosen, best, size = (found.figures(found.cheapest), found.figures(found.best), found.best_size)
    of = f"of {len(found.networks)} networks of {found.space.get('name')}"
    if best.kind == "size":
        return (
            f"Nothing here ranks networks of similar FLOPs better than their size: {of}, "
            f"{best.name} alone has the highest tau within FLOPs bins, {tau_text(best.within)}."
        )
    if not found.beats_size:
        return (
            f"Nothing here ranks networks of similar FLOPs reliably better than their size: {of}, "
            f"{size.name} alone has tau {tau_text(size.within)} within FLOPs bins, and the best, "
            f"{best.name}, cannot be told from that with {tau_text(best.within)}."
        )
    text = f"Search with '{chosen.name}', at {percent(chosen.cost)} % of a long training: {of}, it "
    text += f"has tau {tau_text(chosen.within)} within FLOPs bins"
    if chosen.name != best.name:
        text += f", which cannot be told from the best, '{best.name}' with {best.within.value:.2f}"
    return f"{text}; size alone ({size.name}) has {size.within.value:.2f}."


def calibration_text(found: Calibration) -> str:
    """For a terminal: verdict, table, notes."""
    return "\n".join(
        [verdict(found), "", *columns([_HEADS, *_rows(found)], left=(0, -1)), "", *_notes(found)]
    )


def calibration_markdown(found: Calibration) -> str:
    """The same as a page."""
    head = f"| {' | '.join(_HEADS)} |\n|---|--:|--:|--:|---|"
    rows = "\n".join(f"| {' | '.join(row)} |" for row in _rows(found))
    picture = "![Cost against tau within FLOPs bins](calibration.png)"
    notes = "\n".join(f"- {line}" for line in _notes(found))
    return f"{verdict(found)}\n\n{head}\n{rows}\n\n{notes}\n\n{picture}\n"


def percent(share: float) -> str:
    """A share in percent with two or three digits: `0.0031`, `0.42`, `12.3`, `100`."""
    value = 100 * share
    return (
        f"{value:.1f}" if 1 <= value < 99.95 else f"{value:.0f}" if value >= 1 else f"{value:.2g}"
    )


def _rows(found: Calibration) -> Iterator[tuple[str, ...]]:
    for one in found.proxies:
        yield (one.name, percent(one.cost), tau_text(one.overall), tau_text(one.within), _what(one))
    ceiling = (tau_text(found.ceiling_overall), tau_text(found.ceiling_within))
    others = "the other one" if found.seeds == 2 else f"the mean of the other {found.seeds - 1}"
    yield ("ceiling", "100", *ceiling, f"one long training against {others}")


def _what(one: ProxyFigures) -> str:
    lost = plural(one.missing, "network")
    return SAID[one.kind] + (f"; no figure of {lost}" if one.missing else "")


def _notes(found: Calibration) -> Iterator[str]:
    yield (
        f"tau: Kendall's tau-b to the mean of {found.seeds} long trainings of {found.long_epochs} "
        f"epochs, over {len(found.networks)} networks; within FLOPs bins: {_bins(found.bins)}. In "
        "brackets: 95 % intervals of a bootstrap over networks; it shows none of a perfect order."
    )
    yield (
        "A part of a long training is compared to the other long trainings alone. Cost: seconds, "
        "as a share of one long training. A proxy that has no figure of a network ranks it last."
    )
    if found.lost:
        lost, are = plural(found.lost, "network"), "is" if found.lost == 1 else "are"
        yield f"{lost} could not be trained long to the end and {are} left out."


def _bins(number: int) -> str:
    return "there is one bin, all of them" if number == 1 else f"the mean of {number} bins"


def tau_text(tau: Tau) -> str:
    """`0.62 (0.41 to 0.78)`; `1.00 (no interval)` where every resample has the same tau."""
    if tau.low == tau.high:
        return f"{tau.value:.2f} (no interval)"
    return f"{tau.value:.2f} ({tau.low:.2f} to {tau.high:.2f})"
