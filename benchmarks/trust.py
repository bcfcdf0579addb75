"""Whether searches of digits bear out what their reports say: random search, neighbours' order.

Three searches and three random ones, without early stopping and baselines. Each search's report
says what share of its hypervolume a random search would reach; the random searches reached what
the table has. Then the first search with three further trainings of what may be on its front: the
probability that two neighbours are in the true order, on the front as it was found (by the further
trainings alone) and on that after them (as the report has it). Runs are kept in results/trust.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise, product
from math import sqrt
from pathlib import Path
from statistics import fmean

import numpy as np
from common import ROOT, Figures, conclude, is_quick, rounded, show
from scipy.stats import norm

from vitnas.api import load_space, search
from vitnas.config.costs import log_costs
from vitnas.pareto import hypervolume
from vitnas.report.chance import chance_of
from vitnas.report.progress import corner_of
from vitnas.report.trust import assess
from vitnas.run import Run


def searched(out: Path, seed: int, sampler: str, quick: bool, replicates: int = 0) -> Run:
    """A search that is only read where it has ended."""
    space = load_space("digits")
    if quick:
        changes = {"epochs": 1, "train_fraction": 0.3}
        space = space.with_proxy(space.config.proxy.model_copy(update=changes))
    return search(
        space,
        out=out,
        trials=12 if quick else 24,
        seed=seed,
        sampler=sampler,
        pruner="none",
        baselines=False,
        replicates=replicates,
        backend="serial",
    )


def reached(other: Run, run: Run) -> float:
    """Hypervolume of another run by expected top-1, as a share of this run's."""
    volumes = []
    for one in (other, run):
        known = (
            (t.estimate or 0.0, log_costs(one.costs, t.costs(one.costs))) for t in one.complete
        )
        points = [(-top1, *logs) for top1, logs in known]
        volumes.append(hypervolume(points, corner_of([run])))
    return volumes[0] / volumes[1]


def in_order(found: Run, repeated: Run) -> float:
    """The mean probability of neighbours on the front of `found` to be in the true order, by the
    further trainings in `repeated` of the same networks."""
    again = {trial.key: trial.replicates for trial in repeated.trials}
    chances = []
    assert repeated.noise is not None
    for pair in pairwise(found.front):
        cheap, dear = repeated.noise.expected([again[trial.key] for trial in pair])
        chances.append(norm.cdf((dear.top1 - cheap.top1) / sqrt(cheap.error**2 + dear.error**2)))
    return fmean(chances)


def figures_of(folder: Path, quick: bool) -> dict[str, float]:
    seeds = range(1 if quick else 3)
    runs = [searched(folder / f"ehvi-{seed}", seed, "ehvi", quick) for seed in seeds]
    others = [searched(folder / f"random-{seed}", seed, "random", quick) for seed in seeds]
    rows, inside, said, shares = [], 0, [], []
    for (seed, run), other in product(enumerate(runs), others):
        chance, share = chance_of(run), reached(other, run)
        if chance is None:
            raise SystemExit(f"{run.path}: nothing is said of a random search")
        low, median, high = chance.low[-1], chance.median[-1], chance.high[-1]
        inside += low <= share <= high
        said.append(median)
        shares.append(share)
        rows.append((str(seed), f"{median:.2f} ({low:.2f} to {high:.2f})", f"{share:.2f}"))
    show(("search", "a random search would reach, by its report", "one reached"), rows)
    repeated = searched(folder / "repeated-0", 0, "ehvi", quick, replicates=1 if quick else 3)
    after = assess(repeated).ordered
    return {
        "compared": len(rows),
        "inside": inside,
        "said": float(np.mean(said)),
        "reached": float(np.mean(shares)),
        "neighbours_in_order": in_order(runs[0], repeated),
        "neighbours_in_order_after_replicates": np.nan if after is None else after,
        "further_trainings": len(repeated.replicates),
    }


def main() -> None:
    quick = is_quick(__doc__)
    with tempfile.TemporaryDirectory() as place:
        found = figures_of(Path(place) if quick else ROOT / "results" / "trust", quick)
    figures: Figures = {name: rounded(value) for name, value in found.items()}
    targets = {
        "inside": {"min": 0.0 if quick else 0.9 * found["compared"]},
        "neighbours_in_order": {"min": 0.0 if quick else 0.8},
    }
    conclude("trust", quick, figures, targets)


if __name__ == "__main__":
    main()
