"""What it buys to try each mixer in each stage once: searches where the truth is known.

Made-up accuracies of the networks of `images_64` rise with FLOPs, with inverted residuals, and by a
given worth of attention in the middle stage and half of it of static keys in the first: mixers that
no network has that is alike in all stages. A worth that is `rising` is -0.6 at 0.4 M FLOPs and 0.6
at 10 M: attention is bad for cheap networks and good for large ones. A score is such an accuracy,
measured on 480 images (binomial). `ehvi` proposes 60 networks with every third proposal for what no
network has had, as it does in a search, and without. The table has the best true top-1 among the
networks seen for at most so many FLOPs, as a mean over log FLOPs from 0.4 to 19 M; with the 95 %
interval of the gain from pairs of searches.
"""

from __future__ import annotations

import random
from math import exp, log
from statistics import fmean, stdev

import numpy as np
from common import Bound, Figures, conclude, is_quick, rounded, show
from scipy.special import stdtrit

from vitnas.config.model import ModelConfig
from vitnas.config.space import load_space
from vitnas.cost.closed_form import closed_form
from vitnas.engine.samplers.ehvi import EHVISampler
from vitnas.engine.samplers.pool import SpacePool, mixers_of
from vitnas.records import Outcome
from vitnas.replay.simulation import MemoryStore

IMAGES, TRIALS, EVERY = 480, 60, 3
MIXERS = {"mbconv": 0.15, "cska": -0.1, "skip": -0.6}
WORTHS = (-0.4, -0.2, 0.0, None, 0.3, 0.6)
BUDGETS = np.geomspace(4e5, 1.9e7, 60)


def truth(config: ModelConfig, flops: int, given: float | None) -> float:
    """True top-1 in percent; no training is done.

    Args:
        config, flops: of the network.
        given: the worth in log-odds; None: it rises with FLOPs.
    """
    worth = 1.2 * log(flops / 4e5) / log(1e7 / 4e5) - 0.6 if given is None else given
    first, middle, _ = (stage.token_mixer for stage in config.stages)
    odds = 0.9 * log(flops / 3e5) - 0.3
    odds += sum(MIXERS.get(str(stage.token_mixer), 0.0) for stage in config.stages)
    odds += worth * (middle == "mhsa") + worth / 2 * (first == "ska")
    odds += random.Random(config.key).gauss(0, 0.1)
    return 100 / (1 + exp(-odds))


def search(seed: int, worth: float | None, trials: int, every: int) -> tuple[float, int]:
    """The mean best true top-1, and how many mixers of a stage no network had."""
    space, store, luck = load_space("images_64"), MemoryStore({}), np.random.default_rng(seed)
    pool, limits = SpacePool(space, seed), space.config.limits
    store.study.sampler = EHVISampler(pool, seed, limits=limits, untried_every=every)
    offered = {place for one in pool.sample() for place in enumerate(one.mixers)}
    points = []
    for _ in range(trials):
        trial = store.ask()
        config = space.suggest(trial)
        cost = closed_form(config)
        network = {"config": config.to_tree(), "key": config.key, "flops": cost.flops}
        store.describe(trial.number, "network", network | {"num_params": cost.num_params})
        true = truth(config, cost.flops, worth)
        score = 100 * int(luck.binomial(IMAGES, true / 100)) / IMAGES
        store.describe(trial.number, "curve", [score])
        store.tell(trial.number, Outcome.COMPLETE, (score, float(cost.flops)))
        points.append((cost.flops, true))
        offered -= set(enumerate(mixers_of(config)))
    best = [max((true for flops, true in points if flops <= most), default=0.0) for most in BUDGETS]
    return fmean(best), len(offered)


def main() -> None:
    quick = is_quick(__doc__)
    seeds, trials, worths = (2, 12, WORTHS[-1:]) if quick else (12, TRIALS, WORTHS)
    figures: Figures = {"seeds": seeds, "trials": trials, "images": IMAGES}
    targets: dict[str, Bound] = {}
    rows = []
    for worth in worths:
        called = "rising" if worth is None else f"{worth:+.1f}"
        without, tried = (
            [search(seed, worth, trials, every) for seed in range(seeds)] for every in (0, EVERY)
        )
        gains = [new[0] - old[0] for old, new in zip(without, tried, strict=True)]
        error = float(stdtrit(seeds - 1, 0.975)) * stdev(gains) / seeds**0.5
        left = [fmean(number for _, number in found) for found in (without, tried)]
        rows.append(
            (
                called,
                *(f"{fmean(best for best, _ in found):.2f}" for found in (without, tried)),
                f"{fmean(gains):+.2f} ± {error:.2f}",
                *(f"{number:.1f}" for number in left),
            )
        )
        name = f"worth_{called}"
        figures[f"{name}_points"], figures[f"{name}_error"] = rounded(fmean(gains)), rounded(error)
        figures[f"{name}_untried"] = rounded(left[1])
        targets[f"{name}_points"] = {"min": 1.0 if worth == WORTHS[-1] else -0.3}
    head = ("worth, log-odds", "without", "with", "points gained", "never tried", "with it")
    show(head, rows)
    conclude("untried", quick, figures, targets)


if __name__ == "__main__":
    main()
