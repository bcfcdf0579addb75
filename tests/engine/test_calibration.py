"""Whether `confident` keeps its promise when noise is Gaussian, choosing who is trained again as a
search does: the chances are compared with how often they come true over many invented runs."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest

from vitnas.engine.decide.replicates import Replication
from vitnas.noise import Noise
from vitnas.pareto import front
from vitnas.records import Outcome, TrialRecord
from vitnas.run import Run
from vitnas.sessions import Data, Environment

IMAGES, NETWORKS = 400, 14


def invented(draw: np.random.Generator, phi: float, wanted: int) -> list[tuple[float, bool]]:
    """(chance, whether it is on the front in truth) of each network of a run."""
    size = draw.uniform(0, 1, NETWORKS)
    truth = 95 - 15 * np.exp(-3 * size) + draw.normal(0, 1.5, NETWORKS)
    noise = Noise(phi, 10**6, IMAGES)
    numbers = count()

    def training(index: int, replicate_of: int | None = None) -> TrialRecord:
        top1 = draw.normal(truth[index], noise.error(truth[index]))
        flops = int(10 ** (5 + 2 * size[index]))
        return TrialRecord(
            next(numbers),
            outcome=Outcome.COMPLETE,
            flops=flops,
            curve=(top1,),
            replicate_of=replicate_of,
        )

    trials = [training(index) for index in range(NETWORKS)]
    replication = Replication(wanted, IMAGES)
    while (original := replication.next(trials)) is not None:
        trials.append(training(original, original))
    from vitnas.records import averaged

    told = Environment(data=Data(num_val_images=IMAGES))
    run = Run(Path(), "", averaged(trials), {}, told, NETWORKS)
    members = set(front(np.column_stack([-truth, [t.flops for t in run.trials]])))
    return [(run.chances[t.number], t.number in members) for t in run.trials]


@pytest.mark.slow
@pytest.mark.parametrize(("phi", "wanted"), [(1.0, 0), (0.5, 3), (3.0, 3)])
def test_chances_come_true_as_often_as_they_say(phi: float, wanted: int) -> None:
    draw = np.random.default_rng(0)
    found = [pair for _ in range(25) for pair in invented(draw, phi, wanted)]
    chance = np.array([pair[0] for pair in found])
    true = np.array([pair[1] for pair in found])
    confident = chance >= 0.9
    assert confident.sum() >= 40
    assert true[confident].mean() >= 0.9, "at least what is promised"
    for low, high in ((0.1, 0.5), (0.5, 0.9), (0.9, 1.0)):
        inside = (chance >= low) & (chance <= high)
        share, promised = true[inside].mean(), chance[inside].mean()
        slack = 3 * np.sqrt(max(promised * (1 - promised), 0.01) / inside.sum()) + 0.05
        assert abs(share - promised) < slack, (low, high, share, promised)
