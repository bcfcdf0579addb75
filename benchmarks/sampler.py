"""How long a proposal takes when a study is large, and how long deciding about an epoch.

A study of networks of `two_stages.yaml` with made-up curves (two thirds of them stopped early) is
filled to so many finished trials; then `ehvi` proposes again and again, each proposal ending in one
more finished trial. Processor time is shown beside wall time, for machines that do other things,
too. The first proposal, which draws the pool, is shown by itself. The pruner is asked about the
same study.
"""

from __future__ import annotations

import statistics
import time

from common import conclude, draw_configs, is_quick, made_up_curve, seconds_of, show, two_stages

from vitnas.cost.closed_form import closed_form
from vitnas.engine.pruning.pareto import make_pruner
from vitnas.engine.samplers import make_sampler
from vitnas.records import Outcome
from vitnas.replay.simulation import MemoryStore

EPOCHS = 10


def fill(store: MemoryStore, trials: int) -> None:
    """End so many made-up trainings."""
    for index, config in enumerate(draw_configs(two_stages(), trials)):
        cost = closed_form(config)
        curve = made_up_curve(config, cost.flops, EPOCHS)
        number = store.ask().number
        network = {"config": config.to_tree(), "key": config.key, "flops": cost.flops}
        store.describe(number, "network", network | {"num_params": cost.num_params})
        stopped = index % 3 > 0
        store.describe(number, "curve", curve[:4] if stopped else curve)
        if stopped:
            store.tell(number, Outcome.STOPPED)
        else:
            store.tell(number, Outcome.COMPLETE, (curve[-1], float(cost.flops)))


def proposal_times(trials: int, proposals: int) -> tuple[list[float], list[float]]:
    """Wall and processor seconds of each proposal, the first one included."""
    space = two_stages()
    store = MemoryStore({})
    fill(store, trials)
    store.study.sampler = make_sampler("ehvi", 0, space)
    times, busy = [], []
    for _ in range(proposals):
        trial = store.ask()
        drawn = []
        began = time.process_time()
        times.append(seconds_of(lambda: drawn.append(space.suggest(trial))))  # noqa: B023
        busy.append(time.process_time() - began)
        cost = closed_form(drawn[0])
        network = {"config": drawn[0].to_tree(), "key": drawn[0].key, "flops": cost.flops}
        store.describe(trial.number, "network", network | {"num_params": cost.num_params})
        curve = made_up_curve(drawn[0], cost.flops, EPOCHS)
        store.describe(trial.number, "curve", curve)
        store.tell(trial.number, Outcome.COMPLETE, (curve[-1], float(cost.flops)))
    return times, busy


def decision_time(trials: int, repeats: int) -> float:
    """Median seconds of the pruner's decision about a trial at its second rung."""
    store = MemoryStore({})
    fill(store, trials)
    pruner = make_pruner("both", EPOCHS)
    assert pruner is not None
    trial, *others = store.records()
    return statistics.median(
        seconds_of(lambda: pruner.should_stop(trial, others)) for _ in range(repeats)
    )


def main() -> None:
    quick = is_quick(__doc__)
    trials, proposals = (60, 4) if quick else (1000, 120)
    (first, *times), (_, *busy) = proposal_times(trials, proposals)
    figures = {
        "trials": trials,
        "first_proposal_ms": round(1e3 * first, 1),
        "proposal_ms": round(1e3 * statistics.median(times), 1),
        "proposal_cpu_ms": round(1e3 * statistics.median(busy), 1),
        "slowest_proposal_ms": round(1e3 * max(times), 1),
        "pruning_ms": round(1e3 * decision_time(trials, 3 if quick else 21), 2),
    }
    show(("ehvi", "value"), [(name, f"{value:g}") for name, value in figures.items()])
    conclude("sampler", quick, figures, {"proposal_ms": {"max": 30.0}})


if __name__ == "__main__":
    main()
