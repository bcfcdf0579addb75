"""Fronts, proposals and the study: what a search does beside training.

Front and hypervolume of 10,000 points in two objectives, of a random cloud and of points that are
all on the front, against the textbook's comparison of every pair; draws from every shipped
space, answered at random; TPE's proposals after a hundred trials; and what the study's file costs a
trial of ten epochs (made-up curves, nothing is trained), on this disk and in memory.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from common import (
    conclude,
    draw_configs,
    is_quick,
    made_up_curve,
    median_seconds,
    rounded,
    seconds_of,
    show,
    train_made_up,
    two_stages,
)

from vitnas.config.costs import DEFAULT_COSTS, directions_of
from vitnas.config.space import load_space, shipped_spaces
from vitnas.cost.closed_form import closed_form
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.rules import Rules
from vitnas.engine.samplers import make_sampler
from vitnas.engine.store.study import RunStore
from vitnas.pareto import front, front_ranks, hypervolume

Array = npt.NDArray[np.float64]
REFERENCE = (1.1, 1.1)


def clouds(count: int) -> dict[str, Array]:
    """Points in the unit square: a cloud with a small front, and a curve that is all front."""
    draw = np.random.default_rng(0)
    along = draw.random(count)
    return {"random": draw.random((count, 2)), "all front": np.stack([along, 1 - along], axis=1)}


def pairwise_front(points: Array) -> list[int]:
    """The front by comparing every point with all others."""
    kept = []
    for index, point in enumerate(points):
        dominates = (points <= point).all(axis=1) & (points < point).any(axis=1)
        if not dominates.any():
            kept.append(index)
    return kept


def front_figures(count: int, repeats: int) -> dict[str, float]:
    rows, slowest, ratios = [], 0.0, []
    for name, points in clouds(count).items():
        fronts = median_seconds(lambda: front(points), repeats)  # noqa: B023
        volume = median_seconds(lambda: hypervolume(points, REFERENCE), repeats)  # noqa: B023
        ranks = median_seconds(lambda: front_ranks(points), repeats)  # noqa: B023
        pairs = seconds_of(lambda: pairwise_front(points))  # noqa: B023
        assert pairwise_front(points) == front(points)
        slowest = max(slowest, fronts + volume)
        ratios.append(pairs / fronts)
        rows.append((name, *(f"{1e3 * s:.1f}" for s in (fronts, volume, ranks, pairs))))
    print(f"{count:,} points, ms")
    show(("points", "front", "hypervolume", "ranks", "front by pairs"), rows)
    return {
        "points": count,
        "front_and_hypervolume_ms": round(1e3 * slowest, 2),
        "pairs_over_front_least": rounded(min(ratios)),
    }


def draw_figures(count: int) -> dict[str, float]:
    """Draws a second of each space, answered at random; no sampler, no study."""
    rates = {}
    for name in shipped_spaces():
        space = load_space(name)
        rates[name] = count / seconds_of(lambda: draw_configs(space, count))  # noqa: B023
    show(("space", "draws/s"), [(name, f"{rate:,.0f}") for name, rate in rates.items()])
    return {
        "draws_per_s_digits": round(rates["digits"]),
        "draws_per_s_hybrid_cifar": round(rates["hybrid_cifar"]),
        "draws_per_s_slowest_space": round(min(rates.values())),
    }


def tpe_figures(trials: int, proposals: int) -> dict[str, float]:
    """Seconds for a TPE proposal from `two_stages.yaml`, the study in memory."""
    import optuna

    space = two_stages()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        directions=directions_of(DEFAULT_COSTS), sampler=make_sampler("tpe", 0)
    )
    times = []
    for number in range(trials + proposals):
        if number < trials:
            study.sampler = make_sampler("random", number)
        elif number == trials:
            study.sampler = make_sampler("tpe", 0)
        trial = study.ask()
        drawn = []
        times.append(seconds_of(lambda: drawn.append(space.suggest(trial))))  # noqa: B023
        flops = closed_form(drawn[0]).flops
        study.tell(trial, (made_up_curve(drawn[0], flops, 1)[-1], float(flops)))
    seconds = statistics.median(times[trials:])
    show(("proposals", "ms"), [(f"TPE after {trials} trials", f"{1e3 * seconds:.1f}")])
    return {f"tpe_proposal_ms_after_{trials}": round(1e3 * seconds, 1)}


def study_figures(trials: int) -> dict[str, float]:
    """Transactions and milliseconds of the study's file for a trial of ten epochs."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    space = two_stages()
    commits = [0]
    event.listen(Engine, "commit", lambda connection: commits.__setitem__(0, commits[0] + 1))
    figures: dict[str, float] = {}
    places = {"disk": None, "memory": Path("/dev/shm")}
    for place, parent in places.items():
        if parent is not None and not parent.is_dir():
            continue
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            store = RunStore(Path(folder), {"space": space.to_tree(), "seed": 0})
            controller = Controller(store, space, Rules(trials, sampler="random"))
            commits[0] = 0
            seconds = seconds_of(lambda: train_made_up(controller))  # noqa: B023
            store.close()
        figures[f"study_ms_per_trial_{place}"] = round(1e3 * seconds / trials, 1)
        figures["transactions_per_trial"] = round(commits[0] / trials, 1)
    show(
        ("study.db, a trial of 10 epochs", "value"),
        [(name.replace("_", " "), f"{value:g}") for name, value in figures.items()],
    )
    return figures


def main() -> None:
    quick = is_quick(__doc__)
    figures = front_figures(*((1_000, 3) if quick else (10_000, 21)))
    figures |= draw_figures(20 if quick else 500)
    figures |= tpe_figures(*((20, 3) if quick else (100, 21)))
    figures |= study_figures(5 if quick else 50)
    conclude("pareto", quick, figures, {"front_and_hypervolume_ms": {"max": 50.0}})


if __name__ == "__main__":
    main()
