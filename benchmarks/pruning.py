"""A recorded search with pruning and without: epochs saved, front lost, curves and fronts.

The tables that `vitnas replay` searches are real runs with random proposals, every network trained
to its end, one after the other. Random proposals do not depend on results and a training does not
depend on other trainings, so the same run with pruning is known exactly: the same curves, cut where
the pruner stops them. `--table NAME` chooses the run (default digits), `--plot FILE` draws both.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

from common import conclude, rounded, show

from vitnas.engine.pruning import CONFIDENCE, PRUNERS
from vitnas.engine.pruning.pareto import make_pruner
from vitnas.pareto import front, hypervolume
from vitnas.records import Outcome, TrialRecord
from vitnas.replay.table import Table
from vitnas.replay.tables import find_table
from vitnas.report.marks import cost_range, cost_ticks

TITLES = {"none": "every network trained to its end", "curve": "stopped by learning curve"}
_COMPLETE, _STOPPED, _FRONT = "#9db4d3", "#e0762a", "#22262e"
Trials = Sequence[TrialRecord]


def train_again(table: Table, pruner: str) -> list[TrialRecord]:
    """The table's run, trial by trial in its order, with `pruner` deciding after every epoch."""
    decides = make_pruner(pruner, table.epochs)  # type: ignore[arg-type]
    trials: list[TrialRecord] = []
    for number, network in enumerate(table.networks):
        facts = {"flops": network.proposal.flops, "num_params": network.proposal.num_params}
        first = network.trainings[0]
        outcome, curve = first.outcome, first.curve
        for epoch in range(1, len(curve) if decides else 0):
            now = TrialRecord(number, outcome=Outcome.RUNNING, curve=curve[:epoch], **facts)
            others = [trial for trial in trials if trial.curve]
            if decides is not None and others and decides.should_stop(now, others):
                outcome, curve = Outcome.STOPPED, curve[:epoch]
                break
        trials.append(TrialRecord(number, outcome=outcome, curve=curve, **facts))
    return trials


def ended(trials: Trials, outcome: Outcome) -> list[TrialRecord]:
    return [trial for trial in trials if trial.outcome is outcome]


def front_of(trials: Trials) -> list[TrialRecord]:
    """The front's members, cheapest first."""
    complete = ended(trials, Outcome.COMPLETE)
    members = front([(-t.curve[-1], float(t.flops)) for t in complete])
    return sorted((complete[index] for index in members), key=lambda trial: trial.flops)


def volume(trials: Trials, table: Table, floor: float) -> float:
    """Hypervolume of top-1 against log FLOPs above `floor` percent."""
    points = [(-t.curve[-1], log(t.flops)) for t in ended(trials, Outcome.COMPLETE)]
    return hypervolume(points, (-floor, log(table.most_flops)))


def num_epochs(trials: Trials) -> int:
    return sum(trial.epochs for trial in trials)


def draw(table: Table, runs: dict[str, list[TrialRecord]], file: Path) -> None:
    """Learning curves above, fronts below; one column a run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    figure: Any = Figure(figsize=(10.0, 6.4), dpi=84, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2, sharex="row", sharey="row")
    for (name, title), curves, plane in zip(TITLES.items(), *panels, strict=True):
        run = runs[name]
        head = f"{table.name}, {title}: {num_epochs(run):,} epochs"
        curves.set_title(head, loc="left", fontsize=10)
        curves.set_xlabel("epoch", fontsize=9)
        plane.set_xlabel("FLOPs of one image (multiply-adds)", fontsize=9)
        plane.set_xscale("log")
        flops = [network.proposal.flops for network in table.networks]
        low, high = cost_range(min(flops), max(flops))
        plane.set_xlim(low, high)
        plane.set_xticks(*cost_ticks("flops", low, high))
        plane.minorticks_off()
        _draw_curves(curves, run)
        _draw_front(plane, run)
        for axes in (curves, plane):
            axes.set_ylabel("top-1 (%)", fontsize=9)
            axes.tick_params(labelsize=8)
            axes.grid(visible=True, color="#e4e6ea", linewidth=0.8)
            axes.set_axisbelow(True)
    lowest, best = table.worst, max(n.top1 for n in table.complete)
    panels[0][0].set_ylim(best - 5 * (best - lowest), best + 0.3 * (best - lowest))
    panels[1][0].set_ylim(lowest - 0.3 * (best - lowest), best + 0.1 * (best - lowest))
    panels[1][1].legend(loc="lower right", fontsize=8)
    image = io.BytesIO()
    figure.savefig(image, format="png")
    Image.open(image).convert("RGB").quantize(64).save(file, optimize=True)


def _draw_curves(axes: Any, run: Trials) -> None:
    members = {trial.number for trial in front_of(run)}
    for trial in sorted(run, key=lambda trial: trial.number in members):
        if trial.outcome not in (Outcome.COMPLETE, Outcome.STOPPED):
            continue
        epochs = range(1, trial.epochs + 1)
        if trial.outcome is Outcome.STOPPED:
            axes.plot(epochs, trial.curve, color=_STOPPED, linewidth=0.7, alpha=0.7)
            axes.plot(trial.epochs, trial.curve[-1], ".", color=_STOPPED, markersize=4)
        elif trial.number in members:
            axes.plot(epochs, trial.curve, color=_FRONT, linewidth=1.4, zorder=3)
        else:
            axes.plot(epochs, trial.curve, color=_COMPLETE, linewidth=0.7)


def _draw_front(axes: Any, run: Trials) -> None:
    groups = {
        Outcome.COMPLETE: ("trained to the end", {"color": _COMPLETE, "s": 16}),
        Outcome.STOPPED: (
            "stopped early (top-1 when stopped)",
            {"facecolors": "none", "edgecolors": _STOPPED, "linewidths": 0.8, "s": 16},
        ),
    }
    for outcome, (label, style) in groups.items():
        trials = ended(run, outcome)
        axes.scatter([t.flops for t in trials], [t.top1 for t in trials], label=label, **style)
    members = front_of(run)
    steps = ([t.flops for t in members], [t.top1 for t in members])
    axes.step(*steps, where="post", color=_FRONT, linewidth=1.4, label="front")
    axes.plot(*steps, "o", color=_FRONT, markersize=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it still run?")
    parser.add_argument("--table", default="digits", help="a results folder or a recorded table")
    parser.add_argument("--plot", type=Path, help="a PNG to write")
    given = parser.parse_args()
    table = find_table(given.table)
    pruners = ("none", "curve") if given.quick else PRUNERS
    runs = {name: train_again(table, name) for name in pruners}
    whole = {trial.number for trial in front_of(runs["none"])}
    rows, figures = [], {"table": table.name, "networks": len(table.networks)}
    for name, run in runs.items():
        stopped = ended(run, Outcome.STOPPED)
        found = {
            "stopped": len(stopped),
            "of_the_front": sum(trial.number in whole for trial in stopped),
            "epochs": num_epochs(run),
            "epochs_saved_percent": 100 * (1 - num_epochs(run) / num_epochs(runs["none"])),
        }
        for measure, floor in (("chance", table.chance), ("worst", table.worst)):
            kept = volume(run, table, floor) / volume(runs["none"], table, floor)
            found[f"volume_above_{measure}_percent"] = 100 * kept
        rows.append((name, *(f"{rounded(value, 4):g}" for value in found.values())))
        figures |= {f"{name}_{fact}": rounded(value, 4) for fact, value in found.items()}
    show((f"{table.name}, pruner", *(fact.replace("_", " ") for fact in found)), rows)
    if given.plot is not None:
        draw(table, {name: runs[name] for name in TITLES}, given.plot)
    least = 100 * CONFIDENCE
    conclude("pruning", given.quick, figures, {"curve_volume_above_worst_percent": {"min": least}})


if __name__ == "__main__":
    main()
