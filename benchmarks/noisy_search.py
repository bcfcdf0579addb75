"""What expected top-1 buys: searches where the truth is known and every score is partly chance.

Made-up accuracies of the networks of `two_stages.yaml` rise with FLOPs and depend on the mixers,
the expansion and the network itself. A score is such an accuracy, measured on 200 images
(binomial). `ehvi`, Optuna's TPE and random search propose networks. Then the front is read by the
scores, and by expected top-1. At each number of FLOPs, points are lost from the best network seen
to the one that the front offers, both by the truth. The table has the mean over log FLOPs.
"""

from __future__ import annotations

import random
from math import exp, log
from statistics import fmean, stdev

import numpy as np
from common import Figures, conclude, is_quick, rounded, show, two_stages

from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.engine.samplers import make_sampler
from vitnas.noise import PRIOR_DEGREES, Noise
from vitnas.records import Outcome, TrialRecord
from vitnas.replay.simulation import MemoryStore
from vitnas.surrogate.expected import expected_top1
from vitnas.surrogate.features import facts_of

IMAGES, TRIALS = 200, 40
SAMPLERS = ("ehvi", "tpe", "random")


def truth(config: ModelConfig, flops: int) -> float:
    """True top-1 in percent; no training is done."""
    first, second = config.stages
    odds = 0.5 * log(flops / 1e4) + 0.25 * (first.token_mixer in ("mbconv", "dwconv"))
    odds += 0.25 * (second.token_mixer in ("mhsa", "ska")) + 0.05 * (first.depth + second.depth)
    odds += random.Random(config.key).gauss(0, 0.05)
    return 100 / (1 + exp(-odds))


def search(sampler: str, seed: int) -> list[TrialRecord]:
    """A search with scores that are partly chance."""
    space, store, luck = two_stages(), MemoryStore({}), np.random.default_rng(seed)
    store.study.sampler = make_sampler(sampler, seed, space)
    while sum(t.outcome is Outcome.COMPLETE for t in store.records()) < TRIALS:
        trial = store.ask()
        config = space.suggest(trial)
        cost = closed_form(config)
        network = {"config": config.to_tree(), "key": config.key, "flops": cost.flops}
        store.describe(trial.number, "network", network | {"num_params": cost.num_params})
        hits = int(luck.binomial(IMAGES, truth(config, cost.flops) / 100))
        store.describe(trial.number, "curve", [100 * hits / IMAGES])
        store.tell(trial.number, Outcome.COMPLETE, (100 * hits / IMAGES, float(cost.flops)))
    return list(store.records())


def losses(trials: list[TrialRecord]) -> tuple[float, float]:
    """Points of true top-1 that are lost by scores, and by expected top-1."""
    true = np.array([truth(t.network, t.flops) for t in trials])
    facts = [facts_of(t.network, t) for t in trials]
    found = expected_top1(facts, [t.trainings for t in trials], Noise(1.0, PRIOR_DEGREES, IMAGES))
    by_score = np.array([t.curve[-1] for t in trials])
    by_expected = np.array([one.top1 for one in found])
    at = np.geomspace(min(t.flops for t in trials), max(t.flops for t in trials), 200)
    flops = np.array([t.flops for t in trials])
    lost: tuple[list[float], list[float]] = ([], [])
    for most in at:
        inside = np.flatnonzero(flops <= most)
        best = true[inside].max()
        for index, choice in enumerate((by_score, by_expected)):
            lost[index].append(best - true[inside[np.argmax(choice[inside])]])
    return fmean(lost[0]), fmean(lost[1])


def main() -> None:
    quick = is_quick(__doc__)
    seeds = 2 if quick else 20
    figures: Figures = {"seeds": seeds, "trials": TRIALS, "images": IMAGES}
    rows = []
    for sampler in SAMPLERS:
        pairs = [losses(search(sampler, seed)) for seed in range(seeds)]
        by_score, by_expected = (fmean(values) for values in zip(*pairs, strict=True))
        gains = [score - expected for score, expected in pairs]
        error = stdev(gains) / seeds**0.5
        figures[f"{sampler}_lost_by_score"] = rounded(by_score)
        figures[f"{sampler}_lost_by_expected"] = rounded(by_expected)
        figures[f"{sampler}_share"] = rounded(by_expected / by_score)
        rows.append((sampler, f"{by_score:.2f}", f"{by_expected:.2f}", f"± {error:.2f}"))
    show(("points lost", "by scores", "by expected top-1", "error of the difference"), rows)
    conclude("noisy_search", quick, figures, {"ehvi_share": {"max": 0.8}})


if __name__ == "__main__":
    main()
