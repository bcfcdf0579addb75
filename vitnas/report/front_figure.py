"""The page's first plot: top-1 against a cost, as a plain tree for plotly.js."""

from __future__ import annotations

from math import log10

from vitnas.config.costs import COSTS, MEASURED, cost_of
from vitnas.records import BaselineRecord, Outcome, TrialRecord
from vitnas.report.band import band_of
from vitnas.report.drawing import network_drawing
from vitnas.report.figures import MOST_POINTS, Figure, Tree, left_out_text, short, thin
from vitnas.report.marks import (
    BASELINE_COLOUR,
    KNEE_COLOUR,
    PAPER_COLOUR,
    baseline_shape,
    colour,
    cost_range,
    cost_ticks,
    mark_size,
    shape,
)
from vitnas.report.networks import widest_mixer
from vitnas.report.papers import PaperModel
from vitnas.report.plots import (
    barred,
    drawable,
    drawn_baselines,
    drawn_front,
    drawn_open,
    drawn_papers,
    shown_top1,
    step_line,
)
from vitnas.report.standing import expected_text, is_repeated, mean_text, standing_text
from vitnas.report.tested import compare_by_test
from vitnas.report.text import cost_text, count_text, percent_text, plural
from vitnas.run import Run

_NEGLIGIBLE = 0.005


def front_figure(run: Run, cost: str = "flops") -> Figure | None:
    """Top-1 against the log of a cost; None without a trained network."""
    complete, stopped = drawable(run, Outcome.COMPLETE), drawable(run, Outcome.STOPPED)
    if not complete and not stopped:
        return None
    possible = drawn_open(run)
    members = {trial.number for trial in (*drawn_front(run), *possible)}
    shown = thin([t for t in complete if t.number not in members], MOST_POINTS)
    hollow = thin(stopped, MOST_POINTS)
    left_out = len(complete) - len(members) + len(stopped) - len(shown) - len(hollow)
    low, high = cost_range(*_ends(run, cost, complete + stopped))
    front = [t for t in complete if t.number in members and t not in possible]
    data = _hollow(cost, hollow, "stopped early", 6, opacity=0.5) if hollow else []
    end = high if COSTS[cost].sign > 0 else low
    data = [*_band(run, cost, end), *data, *_front_line(run, cost, end)]
    data += _test_lines(run, cost, end)
    data += _baselines(run, cost)
    data += _bars(run, cost)
    groups = dict(_by_mixer(shown + front))
    for mixer in sorted({*groups, *map(widest_mixer, possible)}):
        data.append(_points(cost, mixer, groups.get(mixer, []), members))
    if possible:  # on the front, perhaps
        data += _hollow(cost, possible, "may be on the front", 12)
    data += _papers(run, cost)
    _tell_standing(run, data)
    data += _knee_ring(run, cost)
    layout = _front_layout(run, cost, low, high)
    limits, below = shown_top1(run, cost)
    if limits is not None:
        layout["yaxis"]["range"] = limits
    notes = [
        left_out_text(left_out, "trials behind the front"),
        f"Below the axis: {below}." * bool(below),
    ]
    return Figure(data, layout, " ".join(filter(None, notes)))


def _ends(run: Run, cost: str, trials: list[TrialRecord]) -> tuple[float, float]:
    values = [value for trial in trials for value in trial.costs([cost])]
    values += [getattr(one, cost) for _, family in drawn_baselines(run, cost) for one in family]
    return min(values), max(values)


def _by_mixer(trials: list[TrialRecord]) -> list[tuple[str, list[TrialRecord]]]:
    groups: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        groups.setdefault(widest_mixer(trial), []).append(trial)
    return sorted(groups.items())


def _points(cost: str, mixer: str, trials: list[TrialRecord], members: set[int]) -> Tree:
    large, small = mark_size(mixer, 11), mark_size(mixer, 7.5)
    sizes = [large if trial.number in members else small for trial in trials]
    opacity = [1.0 if trial.number in members else 0.75 for trial in trials]
    marker: Tree = {
        "color": colour(mixer),
        "symbol": shape(mixer)[1],
        "size": sizes,
        "opacity": opacity,
    }
    return _scatter(cost, trials, mixer, marker)


def _hollow(
    cost: str, trials: list[TrialRecord], name: str, size: float, **marker: float
) -> list[Tree]:
    """Hollow marks, each in its mixer's colour and shape; a grey ring stands for all in the
    legend."""
    mixers = [widest_mixer(trial) for trial in trials]
    looks = {
        "color": [colour(mixer) for mixer in mixers],
        "symbol": [f"{shape(mixer)[1]}-open" for mixer in mixers],
        "size": [mark_size(mixer, size) for mixer in mixers],
    }
    marks = _scatter(cost, trials, name, {**looks, **marker})
    ring = {"color": BASELINE_COLOUR, "symbol": "circle-open", "size": size}
    key = {"type": "scatter", "mode": "markers", "name": name, "x": [None], "y": [None]}
    group = {"legendgroup": name}
    return [marks | group | {"showlegend": False}, key | group | {"marker": ring}]


def _baselines(run: Run, cost: str) -> list[Tree]:
    """A trace for each family of baselines, in one colour."""
    return [
        {
            "type": "scatter", "mode": "markers", "name": family,
            "x": [getattr(one, cost) for one in members],
            "y": [short(one.top1) for one in members],
            "text": [_baseline_hover(one) for one in members],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {
                "color": BASELINE_COLOUR, "symbol": baseline_shape(place)[1], "size": 9,
                "line": {"width": 1.6, "color": BASELINE_COLOUR},
            },
        }
        for place, (family, members) in enumerate(drawn_baselines(run, cost))
    ]  # fmt: skip


def _baseline_hover(one: BaselineRecord) -> str:
    test = "" if one.mean_test_top1 is None else f" (test {percent_text(one.mean_test_top1)} %)"
    rate = f", lr {one.lr:g}" if one.lr else ""
    return (
        f"<b>baseline {one.family}</b>, width {one.width}{rate}"
        f"<br>top-1 {percent_text(one.top1)} %{test}"
        f"<br>{count_text(one.flops)} FLOPs, {count_text(one.num_params)} parameters"
    )


def _papers(run: Run, cost: str) -> list[Tree]:
    """Squares around the papers' models, with their names above what is said of the trial."""
    models = drawn_papers(run)
    if not models:
        return []
    square: Tree = {"color": PAPER_COLOUR, "symbol": "square-open", "size": 17}
    square["line"] = {"width": 2, "color": PAPER_COLOUR}
    trace = _scatter(cost, [one.trial for one in models], "the papers' models", square)
    trace["customdata"] = [_paper_line(one) for one in models]
    return [trace | {"hovertemplate": "%{customdata}<br>%{text}<extra></extra>"}]


def _paper_line(one: PaperModel) -> str:
    return f"<b>{one.name}</b>: {one.source}" + (f"<br>{one.resized}" if one.resized else "")


def _bars(run: Run, cost: str) -> list[Tree]:
    """Error bars of one standard error for each network that is drawn large."""
    shown = barred(run)
    if not shown:
        return []
    bar = {
        "type": "scatter", "mode": "markers", "name": "± one standard error", "hoverinfo": "skip",
        "showlegend": False,
        "x": [cost_of(trial, cost) for trial, _ in shown],
        "y": [short(trial.estimate) for trial, _ in shown],
        "marker": {"size": 1, "opacity": 0},
        "error_y": {
            "type": "data", "array": [short(error) for _, error in shown], "color": "soft",
            "thickness": 1.3, "width": 4,
        },
    }  # fmt: skip
    return [bar]


def _tell_standing(run: Run, data: list[Tree]) -> None:
    """Add the chance to be on the front to the hover text; in a repeated run trainings, too."""
    tell = _repeated_line if is_repeated(run) else _chance_line
    lines = {_hover(trial): tell(run, trial) for trial in run.complete}
    for trace in data:
        if "text" in trace:
            trace["text"] = [text + lines.get(text, "") for text in trace["text"]]


def _repeated_line(run: Run, trial: TrialRecord) -> str:
    return (
        f"<br>mean of {plural(len(trial.trainings), 'training')}: {mean_text(run, trial)} %; "
        f"on the front: {standing_text(run, trial)}"
    )


def _chance_line(run: Run, trial: TrialRecord) -> str:
    """Empty for networks that are not on the front for sure."""
    chance = run.chances.get(trial.number, 0.0)
    if chance < _NEGLIGIBLE:
        return ""
    return f"<br>on the front with a probability of {percent_text(chance)} (by images alone)"


def _scatter(cost: str, trials: list[TrialRecord], name: str, marker: Tree) -> Tree:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        # without trials, an entry in the legend
        "x": [cost_of(trial, cost) for trial in trials] or [None],
        "y": [short(trial.estimate) for trial in trials] or [None],
        "text": [_hover(trial) for trial in trials],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": marker,
        "cliponaxis": False,  # a mark on an axis is whole
    }


def _hover(trial: TrialRecord) -> str:
    """What is said of a trial, and its network drawn; plotly reads some HTML tags here."""
    end = "" if trial.outcome is Outcome.COMPLETE else f", stopped after epoch {trial.epochs}"
    reached = trial.mean_test_top1
    test = "" if reached is None else f", test {percent_text(reached)} %"
    expected = f", expected {expected_text(trial)} %" if trial.expected else ""
    known = ((name, trial.measured[name]) for name in MEASURED if name in trial.measured)
    measured = "".join(f", {cost_text(name, value)} {COSTS[name].noun}" for name, value in known)
    return (
        f"<b>trial {trial.number}</b>{end}<br>"
        f"top-1 {percent_text(trial.top1)} %{expected}{test}<br>"
        f"{count_text(trial.flops)} FLOPs, {count_text(trial.num_params)} parameters"
        f"{measured}<br>{network_drawing(trial)}"
    )


def _front_line(run: Run, cost: str, end: float) -> list[Tree]:
    """The step line: the best top-1 up to each value of the cost, extended to `end`."""
    x, y = step_line(run, cost)
    if not x:
        return []
    top1 = [short(value) for value in y]
    name = "Pareto front" if len(run.costs) == 1 else "best of the front"
    line = {
        "type": "scatter", "mode": "lines", "name": name, "hoverinfo": "skip",
        "x": [*x, end], "y": [*top1, top1[-1]],
        "line": {"shape": "hv", "width": 2, "color": "ink"},
    }  # fmt: skip
    return [line]


def _test_lines(run: Run, cost: str, end: float) -> list[Tree]:
    """The optimistic and the pessimistic front by test, until they are asked for in the legend
    only; none where they are the same, or where costs are more than one."""
    found = compare_by_test(run) if len(run.costs) == 1 else None
    members = [trial for trial in drawn_front(run) if found and trial.number in found.ends]
    if found is None or not found.beaten_by or not members:
        return []
    x = [cost_of(trial, cost) for trial in members]
    heights = zip(*(found.ends[trial.number] for trial in members), strict=True)
    return [
        {
            "type": "scatter", "mode": "lines", "name": f"{name} front by test",
            "x": [*x, end], "y": _held(list(y)), "visible": "legendonly", "hoverinfo": "skip",
            "line": {"shape": "hv", "width": 1.5, "color": "soft", "dash": "dot"},
        }
        for name, y in zip(("pessimistic", "optimistic"), heights, strict=True)
    ]  # fmt: skip


def _band(run: Run, cost: str, end: float) -> list[Tree]:
    """What 90 % of the drawn fronts attain, as an area, and their median as a dashed line."""
    band = band_of(run, cost)
    if band is None:
        return []
    x, found = [*band.at, end], band.found
    looks: Tree = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "x": x}
    edge = {"shape": "hv", "width": 0, "color": "band"}
    lines: dict[str, Tree] = {
        "low": {"line": edge, "showlegend": False},
        "high": {"line": edge, "fill": "tonexty", "fillcolor": "band"},
        "median": {"line": {"shape": "hv", "width": 1.5, "color": "soft", "dash": "dash"}},
    }
    names = {"low": "5 %", "high": "90 % of drawn fronts", "median": "median of drawn fronts"}
    return [
        {**looks, "name": names[name], "y": _held(getattr(found, name).tolist()), **more}
        for name, more in lines.items()
    ]


def _held(values: list[float]) -> list[float | None]:
    """The steps' heights, the last one once more for the end of the axis."""
    heights = [short(value) for value in values]
    return [*heights, heights[-1]]


def _knee_ring(run: Run, cost: str) -> list[Tree]:
    """A ring around the knee of a front with at least three members."""
    knee, members = run.knee, drawn_front(run)
    if knee is None or knee not in members or len(members) < 3:
        return []
    ring: Tree = {"color": KNEE_COLOUR, "symbol": "circle-open", "size": 20, "line": {"width": 3}}
    return [_scatter(cost, [knee], f"knee (trial {knee.number})", ring)]


def _front_layout(run: Run, cost: str, low: float, high: float) -> Tree:
    positions, labels = cost_ticks(cost, low, high)
    x: Tree = {"type": "log", "range": [log10(low), log10(high)], "tickvals": positions}
    x |= {"ticktext": labels, "title": {"text": COSTS[cost].axis}}
    y: Tree = {"title": {"text": f"expected {run.quality} on the scoring split (%)"}}
    return {"xaxis": x, "yaxis": y, "hovermode": "closest"}
