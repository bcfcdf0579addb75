"""front.png: top-1 against the log of each cost, for a paper or a slide."""

from __future__ import annotations

from math import inf, isfinite, log
from typing import Any

from vitnas.config.costs import COSTS, EXACT, cost_of
from vitnas.plotting import FAINT, INK, empty_figure, open_axes, png
from vitnas.records import BaselineRecord, Outcome, TrialRecord
from vitnas.report.band import band_of, span
from vitnas.report.facts import space_name
from vitnas.report.marks import (
    BASELINE_COLOUR,
    KNEE_COLOUR,
    PAPER_COLOUR,
    and_text,
    baseline_shape,
    colour,
    cost_range,
    cost_ticks,
    shape,
    top1_range,
)
from vitnas.report.networks import widest_mixer
from vitnas.report.papers import PaperModel, paper_models
from vitnas.report.standing import estimate_error, is_repeated, open_trials
from vitnas.report.text import cost_text, listed, percent_text, plural
from vitnas.run import Run
from vitnas.versus import counting

DPI = 160
WASH = "#3b78d8"


def drawable(run: Run, outcome: Outcome) -> list[TrialRecord]:
    """Trials of one outcome that can be drawn: with finite top-1 and every cost above 0."""
    return [
        trial
        for trial in (run.complete if outcome is Outcome.COMPLETE else run.trials)
        if trial.outcome is outcome
        and all(cost > 0 for cost in trial.costs(run.costs))  # false for NaN
        and trial.estimate is not None
        and isfinite(trial.estimate)
    ]


def drawn_front(run: Run) -> list[TrialRecord]:
    """The front's members that can be drawn, cheapest first."""
    drawn = {trial.number for trial in drawable(run, Outcome.COMPLETE)}
    return [trial for trial in run.front if trial.number in drawn]


def step_line(run: Run, cost: str) -> tuple[list[float], list[float]]:
    """Corners of the step line of one cost: the best top-1 for at most each value of this cost.

    Other costs are ignored. With one cost the corners are the whole front. Along the line the cost
    gets worse and top-1 rises.
    """
    members = sorted(drawn_front(run), key=lambda t: (*t.minimized([cost]), -(t.estimate or 0.0)))
    corners: list[tuple[float, float]] = []
    for trial in members:
        if not corners or (trial.estimate or 0.0) > corners[-1][1]:
            corners.append((trial.costs([cost])[0], trial.estimate or 0.0))
    return [x for x, _ in corners], [y for _, y in corners]


def drawn_open(run: Run) -> list[TrialRecord]:
    """Networks that are on the front or plausible, but not confident; empty without replicates."""
    drawn = {trial.number for trial in drawable(run, Outcome.COMPLETE)}
    return [t for t in open_trials(run) if t.number in drawn] if is_repeated(run) else []


def barred(run: Run) -> list[tuple[TrialRecord, float]]:
    """Networks that are or may be on the front, each with its standard error in points.

    Empty in a run without replicates.
    """
    if not is_repeated(run):
        return []
    shown = {trial.number: trial for trial in (*drawn_front(run), *drawn_open(run))}
    return [(trial, estimate_error(run, trial) or 0.0) for trial in shown.values()]


def drawn_baselines(run: Run, cost: str) -> list[tuple[str, list[BaselineRecord]]]:
    """Families of baselines, each with its members that can be drawn against this cost."""
    if cost not in EXACT:
        return []
    families: dict[str, list[BaselineRecord]] = {}
    for one in run.baselines:
        if one.top1 is not None and getattr(one, cost) > 0:
            families.setdefault(one.family, []).append(one)
    return list(families.items())


def drawn_papers(run: Run) -> list[PaperModel]:
    """The papers' models among the networks that were trained to the end and can be drawn."""
    drawn = {trial.number for trial in drawable(run, Outcome.COMPLETE)}
    return [one for one in paper_models(run) if one.trial.number in drawn]


def shown_top1(run: Run, cost: str) -> tuple[tuple[float, float] | None, str]:
    """The range of the top-1 axis (None for all values), and what is below it: `2 trials and 1
    baseline`."""
    trials = drawable(run, Outcome.COMPLETE)
    front = [trial.estimate or 0.0 for trial in drawn_front(run)]
    limits = top1_range([trial.estimate or 0.0 for trial in trials], front)
    if limits is None:
        return None, ""
    best = max((one.top1 or 0.0 for one in run.baselines), default=0.0)
    limits = limits[0], max(limits[1], best + (limits[1] - max(front)))
    for ends in filter(None, (span(run, cost) for cost in run.costs)):
        limits = min(limits[0], ends[0]), max(limits[1], ends[1])
    limits = _down_to_rivals(run, limits)
    trials += drawable(run, Outcome.STOPPED)
    baselines = [one for _, family in drawn_baselines(run, cost) for one in family]
    below = {
        "trial": sum((trial.estimate or 0.0) < limits[0] for trial in trials),
        "baseline": sum((one.top1 or 0.0) < limits[0] for one in baselines),
    }
    named = [plural(number, what) for what, number in below.items() if number]
    return limits, listed(named) if named else ""


def _down_to_rivals(run: Run, limits: tuple[float, float]) -> tuple[float, float]:
    """A range that holds the baselines that the front is compared with, but is at most twice as
    high: weaker ones would press the front together."""
    low, high = limits
    rivals = [top1 for one in counting(run) if (top1 := one.top1) is not None]
    lowest = min(rivals, default=low) - 0.05 * (high - low)
    return max(min(low, lowest), low - (high - low)), high


def shown_families(run: Run, cost: str) -> set[str]:
    """The families of baselines of which a member is not below the axis."""
    limits, _ = shown_top1(run, cost)
    lowest = -inf if limits is None else limits[0]
    families = drawn_baselines(run, cost)
    return {name for name, family in families if any((one.top1 or 0.0) >= lowest for one in family)}


def front_png(run: Run) -> bytes:
    """The front over all trials as a PNG, with one panel of 1360 x 880 pixels for each cost.

    Complete trials are filled marks. Trials that were stopped early are hollow, because their top-1
    is not that of a full training. The front is a step line, and the knee has a ring.
    """
    figure = empty_figure(8.5 * len(run.costs), 5.5, DPI)
    for axes, cost in zip(
        figure.subplots(1, len(run.costs), squeeze=False)[0], run.costs, strict=True
    ):
        _draw(axes, run, cost)
    return png(figure)


def _draw(axes: Any, run: Run, cost: str) -> None:
    """One panel: top-1 against one cost."""
    _dress(axes, run, cost)
    members, possible = drawn_front(run), drawn_open(run)
    numbers = {trial.number for trial in members}
    _scatter(axes, cost, drawable(run, Outcome.STOPPED), numbers, hollow=True)
    if members:
        _band(axes, run, cost)
        _front_line(axes, run, cost)
    _baselines(axes, run, cost)
    known = [trial for trial in drawable(run, Outcome.COMPLETE) if trial not in possible]
    _scatter(axes, cost, known, numbers, hollow=False)
    _scatter_open(axes, cost, possible)
    _error_bars(axes, run, cost)
    _papers(axes, run, cost)
    if len(members) > 2 and run.knee in members:
        _mark_knee(axes, cost, run.knee)
    if axes.get_legend_handles_labels()[0]:
        looks = {"fontsize": 8, "frameon": True, "framealpha": 0.85, "edgecolor": "none"}
        where = _legend_place(run, cost)
        legend = axes.legend(title="mixer of the widest reach", **where, **looks)
        legend.get_title().set_fontsize(8)


def _legend_place(run: Run, cost: str) -> dict[str, Any]:
    if drawn_baselines(run, cost) or len(run.costs) > 1:  # no place among the marks
        return {"loc": "upper left", "bbox_to_anchor": (0, -0.12), "ncols": 5}
    return {"loc": "lower right" if COSTS[cost].sign > 0 else "lower left"}


def _dress(axes: Any, run: Run, cost: str) -> None:
    title = f"{space_name(run)}: Pareto front"
    title += f" of {run.quality}, {and_text(run.costs)}" if len(run.costs) > 1 else ""
    axes.set_title(title if cost == run.costs[0] else "", loc="left", fontsize=12, color=INK)
    name = COSTS[cost].axis
    name = f"{name[:-1]}, logarithmic)" if name.endswith(")") else f"{name} (logarithmic)"
    axes.set_xlabel(name, color=INK)
    axes.set_ylabel(f"expected {run.quality} on the scoring split (%)", color=INK)
    axes.set_xscale("log")
    open_axes(axes)
    drawn = drawable(run, Outcome.COMPLETE) + drawable(run, Outcome.STOPPED)
    if not drawn:
        axes.text(0.5, 0.5, "no candidate has a top-1 yet", transform=axes.transAxes, ha="center")
    values = [value for trial in drawn for value in trial.costs([cost])]
    values += [getattr(one, cost) for _, family in drawn_baselines(run, cost) for one in family]
    values = values or [1_000_000.0]
    low, high = cost_range(min(values), max(values))
    axes.set_xlim(low, high)
    positions, labels = cost_ticks(cost, low, high)
    axes.set_xticks(positions, labels)
    axes.minorticks_off()
    limits, below = shown_top1(run, cost)
    if limits is not None:
        axes.set_ylim(*limits)
    if below:
        where = {"transform": axes.transAxes, "ha": "right", "va": "top"}  # outside: no mark there
        axes.text(1.0, -0.075, f"{below} below this axis", fontsize=8, color=FAINT, **where)


def _scatter(
    axes: Any, cost: str, trials: list[TrialRecord], members: set[int], *, hollow: bool
) -> None:
    mixers: dict[str, list[TrialRecord]] = {}
    for trial in sorted(trials, key=lambda trial: trial.number in members):  # members on top
        mixers.setdefault(widest_mixer(trial), []).append(trial)
    if hollow and trials:
        ring = {"marker": "o", "facecolors": "none", "edgecolors": BASELINE_COLOUR}
        axes.scatter([], [], s=26, linewidths=0.8, label="stopped early (censored)", **ring)
    for mixer, group in sorted(mixers.items()):
        axes.scatter(
            [cost_of(trial, cost) for trial in group],
            [trial.estimate for trial in group],
            s=[62 if trial.number in members else 26 for trial in group],
            marker=shape(mixer)[0],
            facecolors="none" if hollow else colour(mixer),
            edgecolors=colour(mixer) if hollow else "white",
            linewidths=0.8 if hollow else 0.5,
            alpha=0.45 if hollow else [1 if t.number in members else 0.6 for t in group],
            label=None if hollow else mixer,
            zorder=2 if hollow else 4,
        )


def _baselines(axes: Any, run: Run, cost: str) -> None:
    shown = shown_families(run, cost)
    for place, (family, members) in enumerate(drawn_baselines(run, cost)):
        axes.scatter(
            [getattr(one, cost) for one in members],
            [one.top1 for one in members],
            s=44,
            marker=baseline_shape(place)[0],
            color=BASELINE_COLOUR,
            linewidths=1.3,
            label=f"baseline: {family}" if family in shown else None,
            zorder=2.5,
        )


def _scatter_open(axes: Any, cost: str, trials: list[TrialRecord]) -> None:
    for index, trial in enumerate(trials):
        mixer = widest_mixer(trial)
        axes.scatter(
            cost_of(trial, cost),
            trial.estimate,
            s=62,
            marker=shape(mixer)[0],
            facecolors="white",
            edgecolors=colour(mixer),
            linewidths=1.8,
            label="may be on the front" if index == 0 else None,
            zorder=4,
        )


def _error_bars(axes: Any, run: Run, cost: str) -> None:
    shown = barred(run)
    if shown:
        x, top1 = [cost_of(t, cost) for t, _ in shown], [t.estimate for t, _ in shown]
        style = {"fmt": "none", "ecolor": "#5b626e", "elinewidth": 1.1, "capsize": 3, "zorder": 3.5}
        errors = [error for _, error in shown]
        axes.errorbar(x, top1, yerr=errors, label="one standard error", **style)


def _papers(axes: Any, run: Run, cost: str) -> None:
    """A square around each of the papers' models."""
    trials = [one.trial for one in drawn_papers(run)]
    if trials:
        x, top1 = [cost_of(trial, cost) for trial in trials], [t.estimate for t in trials]
        square = {"s": 130, "marker": "s", "facecolors": "none", "edgecolors": PAPER_COLOUR}
        axes.scatter(x, top1, linewidths=1.6, label="the papers' models", zorder=4.5, **square)


def _band(axes: Any, run: Run, cost: str) -> None:
    band = band_of(run, cost)
    if band is None:
        return
    x, found = [*band.at, axes.get_xlim()[COSTS[cost].sign > 0]], band.found
    low, median, high = ([*y, y[-1]] for y in (found.low, found.median, found.high))
    wash = {"color": WASH, "alpha": 0.16, "linewidth": 0, "zorder": 0.5}
    axes.fill_between(x, low, high, step="post", label="90 % of drawn fronts", **wash)
    dashes = {"where": "post", "color": FAINT, "linewidth": 1.1, "linestyle": "--", "zorder": 1}
    axes.step(x, median, label="median of drawn fronts", **dashes)


def _front_line(axes: Any, run: Run, cost: str) -> None:
    x, top1 = step_line(run, cost)
    line = {"where": "post", "color": INK, "linewidth": 1.6, "zorder": 3}
    name = "Pareto front" if len(run.costs) == 1 else "best of the front"
    end = axes.get_xlim()[COSTS[cost].sign > 0]
    axes.step([*x, end], [*top1, top1[-1]], label=name, **line)


def _mark_knee(axes: Any, cost: str, knee: TrialRecord) -> None:
    """A ring, and its text on the side on which no candidate is better, if there is room."""
    from matplotlib.patheffects import withStroke

    ring = {"s": 170, "facecolors": "none", "edgecolors": KNEE_COLOUR, "linewidths": 2.0}
    (value,) = knee.costs([cost])
    axes.scatter([value], [knee.estimate], zorder=5, label="knee", **ring)
    spent = cost_text(cost, value)
    text = f"knee: trial {knee.number}\n{percent_text(knee.estimate)} % at {spent}"
    low, high = axes.get_xlim()
    from_cheap = log(value / low) / log(high / low)
    is_right = from_cheap < 1 / 6 if COSTS[cost].sign > 0 else from_cheap < 5 / 6
    axes.annotate(
        text, (value, knee.estimate), xytext=(12 if is_right else -10, 12),
        textcoords="offset points", ha="left" if is_right else "right", fontsize=8.5,
        color=KNEE_COLOUR, path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=6,  # above the markers
    )  # fmt: skip
