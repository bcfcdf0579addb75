"""How busy 1 to 1,000 workers are kept: simulated with measured costs, run on no cluster.

The driver is one server that does one thing at a time. What an epoch and a trial cost it is
measured here first as overhead.py does (its processor time with trivial trainings and two workers),
and a proposal after 1,000 trials as sampler.py does; that is added to the trial, though its own
early proposals are in that already. Trainings are those of the recorded table `digits`, drawn at
random, their times scaled so that an epoch takes so long on average; a worker waits from the end of
an epoch or a training until the driver has answered. Once every training runs to its end, once a
replayed search with default sampler and pruner says which ones are stopped, and after how many
epochs on average. Counted is what happens after two lengths of a training, during twenty.
What is not in it: the network between the machines, and anything in Ray that grows with workers.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass

import overhead
from common import conclude, is_quick, show

from vitnas.engine.pruning import DEFAULT_PRUNER
from vitnas.engine.samplers import DEFAULT_SAMPLER
from vitnas.replay.simulation import replay
from vitnas.replay.table import Table
from vitnas.replay.tables import find_table

WORKERS = (1, 8, 64, 256, 1000)
EPOCH_SECONDS = (10.0, 60.0)
WARM_UP, WINDOW = 2, 20  # lengths of a mean training
Training = tuple[int, float]
"""Epochs, and seconds for each."""


@dataclass(frozen=True)
class Costs:
    """Seconds that the driver is busy."""

    epoch: float
    trial: float


@dataclass(frozen=True)
class Use:
    """What a number of workers came to.

    Attributes:
        workers: share of the time in which they train.
        driver: share of the time in which the driver has something to do.
        per_hour: trials that end.
    """

    workers: float
    driver: float
    per_hour: float


def trainings_of(table: Table, seconds: float, stopping: bool) -> list[Training]:
    """The table's trainings with epochs of so many seconds on average."""
    lengths = {network.proposal.key: len(network.trainings[0].curve) for network in table.complete}
    if stopping:
        trace = replay(table, DEFAULT_SAMPLER, DEFAULT_PRUNER)
        whole = trace.started - len(trace.stopped)
        trained = trace.epochs * sum(lengths.values()) - whole * table.epochs
        lengths |= dict.fromkeys(trace.stopped, round(trained / max(1, len(trace.stopped))))
    epochs = [network.trainings[0].seconds / table.epochs for network in table.complete]
    mean = sum(epochs) / len(epochs)
    return [
        (lengths[network.proposal.key], epoch / mean * seconds)
        for network, epoch in zip(table.complete, epochs, strict=True)
    ]


def simulate(trainings: list[Training], workers: int, costs: Costs) -> Use:
    """Workers that train and wait for one driver."""
    draw = random.Random(workers)
    length = sum(epochs * seconds for epochs, seconds in trainings) / len(trainings)
    begin, end = WARM_UP * length, (WARM_UP + WINDOW) * length
    queue: list[tuple[float, int, int, float]] = []  # an epoch ends: when, whose, left, seconds
    free = trained = answered = 0.0  # when the driver is free; seconds that count
    ended = 0

    def within(since: float, until: float) -> float:
        return max(0.0, min(until, end) - max(since, begin))

    def answer(now: float, seconds: float) -> None:
        nonlocal free, answered
        started = max(now, free)
        free = started + seconds
        answered += within(started, free)

    def train(worker: int, left: int, seconds: float) -> None:
        nonlocal trained
        trained += within(free, free + seconds)
        heapq.heappush(queue, (free + seconds, worker, left - 1, seconds))

    for worker in range(workers):
        answer(0.0, costs.trial)
        train(worker, *draw.choice(trainings))
    while queue[0][0] < end:
        now, worker, left, seconds = heapq.heappop(queue)
        answer(now, costs.epoch if left else costs.epoch + costs.trial)
        if left:
            train(worker, left, seconds)
        else:
            ended += begin <= now
            train(worker, *draw.choice(trainings))
    window = end - begin
    return Use(trained / workers / window, answered / window, 3600 * ended / window)


def measured_costs(quick: bool) -> tuple[Costs, Mapping[str, float]]:
    figures = overhead.tune_figures(*((20, 1) if quick else (100, 3)))
    figures |= overhead.proposal_figures(*((60, 4, 1) if quick else (1000, 60, 1)))
    kept = ("driver_epoch_ms", "driver_trial_ms", "proposal_after_trials", "proposal_cpu_ms")
    chosen = {name: figures[name] for name in kept}
    trial = chosen["driver_trial_ms"] + chosen["proposal_cpu_ms"]
    return Costs(chosen["driver_epoch_ms"] / 1e3, trial / 1e3), chosen


def main() -> None:
    quick = is_quick(__doc__)
    costs, figures = measured_costs(quick)
    table = find_table("digits")
    found: dict[str, float] = dict(figures)
    for stopping in (False, True):
        for seconds in EPOCH_SECONDS:
            trainings = trainings_of(table, seconds, stopping)
            epochs = sum(length for length, _ in trainings) / len(trainings)
            kind = "stopped early" if stopping else "to the end"
            print(f"\n{kind}: {epochs:.1f} epochs of {seconds:g} s on average")
            rows = []
            for workers in WORKERS[::2] if quick else WORKERS:
                use = simulate(trainings, workers, costs)
                shares = f"{100 * use.workers:.1f} %", f"{100 * use.driver:.1f} %"
                rows.append((f"{workers:,}", *shares, f"{use.per_hour:,.0f}"))
                name = f"{kind.replace(' ', '_')}_{seconds:g}_s_{workers}_workers"
                found[f"busy_{name}"] = round(use.workers, 4)
                found[f"trials_per_hour_{name}"] = round(use.per_hour, 1)
            show(("workers", "busy", "driver busy", "trials/hour"), rows)
    targets = {"busy_to_the_end_60_s_1000_workers": {"min": 0.9}}
    conclude("scaling", quick, found, targets)


if __name__ == "__main__":
    main()
