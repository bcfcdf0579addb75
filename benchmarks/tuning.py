"""What the tuning before a search costs in accuracy, by how it decides.

A few networks of a space, those that `vitnas tune` takes, are trained at seven rates, each twice as
high as the last, with several seeds. Every training is kept in a file, so the command resumes.
Then the tuning is replayed many times from each rate as the space's own, with vitnas's own tuner,
whose trainings are drawn from that table: two of the networks, and another seed for each training
of a network at a rate. A recipe that is not in the table counts as one that diverges.

For each way to decide and each rate to begin with: the points of top-1 that the recipe which the
tuning chooses loses against the best rate for all these networks, both by the mean over all seeds.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import ROOT, Figures, conclude, folder_in_memory, rounded, show
from rates import RATES, Table, measure, space_parser, the_space

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.training import ProxyConfig
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.tuning.knobs import Recipes
from vitnas.engine.tuning.networks import varied_networks
from vitnas.engine.tuning.tuner import Gain, Tuner
from vitnas.records import Outcome


@dataclass(frozen=True)
class Way:
    """How a tuning spends its trainings and decides.

    Attributes:
        name: in the table.
        recipes: tried, the space's own among them.
        seeds: of the last comparison; 0 for none, so that the best of the tried ones is taken.
        errors: of how many standard errors the gain must be larger.
    """

    name: str
    recipes: int
    seeds: int
    errors: float

    def takes(self, gain: Gain) -> bool:
        return gain.points > self.errors * gain.error

    @property
    def trainings(self) -> int:
        """Of each network."""
        return self.recipes + 2 * self.seeds


OWN, USED = "the space's own, whatever it is", "5 recipes, one seed, above zero"
"""The second one is what a search does."""
WAYS = (
    Way(OWN, 1, 0, 1.0),
    Way("5 recipes, one seed, above its error", 5, 1, 1.0),
    Way(USED, 5, 1, 0.0),
    Way("5 recipes, no comparison", 5, 0, 0.0),
    Way("3 recipes, two seeds, above its error", 3, 2, 1.0),
    Way("3 recipes, two seeds, above zero", 3, 2, 0.0),
    Way("5 recipes, three seeds, above its error", 5, 3, 1.0),
    Way("5 recipes, three seeds, above zero", 5, 3, 0.0),
)


class Drawn:
    """Trainings drawn from the table.

    Args:
        table: top-1 by seed, network and rate.
        networks: of the table that are tried, by their keys.
        proxy: of the table, at any rate.
        seed: of the draw.
    """

    def __init__(
        self, table: Table, networks: Mapping[str, int], proxy: ProxyConfig, seed: int
    ) -> None:
        self._table, self._networks, self._seed = table, networks, seed
        self._recipes = [proxy.model_copy(update={"lr": rate}) for rate in RATES]
        self._drawn: dict[tuple[int, int], Iterator[float]] = {}
        self._given: dict[str, Answer] = {}

    def __call__(self, requests: Sequence[Request]) -> Mapping[str, Answer]:
        for request in requests:
            if request.key not in self._given:
                self._given[request.key] = self._answer(request)
        return self._given

    def _answer(self, request: Request) -> Answer:
        if request.proxy not in self._recipes:
            return Answer(outcome=Outcome.DIVERGED)
        place = self._networks[request.subject.key], self._recipes.index(request.proxy)
        if place not in self._drawn:
            values = self._table[(slice(None), *place)].tolist()
            shuffled = random.Random(f"{self._seed}/{place}").sample(values, len(values))
            self._drawn[place] = iter(shuffled)
        top1 = next(self._drawn[place])
        if math.isnan(top1):
            return Answer(outcome=Outcome.DIVERGED)
        return Answer(outcome=Outcome.COMPLETE, curve=(top1,))


def arguments() -> argparse.Namespace:
    parser = space_parser(__doc__)
    parser.add_argument("--networks", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--draws", type=int, default=100, help="replays of each pair of networks")
    parser.add_argument("--into", type=Path, default=ROOT / "results" / "tuning")
    return parser.parse_args()


def replayed(
    way: Way,
    space: SearchSpace,
    configs: Sequence[ModelConfig],
    own: float,
    num_images: int,
    train: Drawn,
    seed: int,
) -> float:
    """The rate that one tuning chooses; so many images score."""
    proxy = space.config.proxy.model_copy(update={"lr": own})
    recipes = Recipes(proxy, space.config.data, 8 * proxy.batch_size)
    tuner = Tuner(recipes, configs, configs[0].num_classes, seed, train)
    tuner.run(way.recipes)
    best = tuner.best
    if best.number == 0:
        return own
    if way.seeds and not way.takes(tuner.compare(best, num_images, way.seeds)):
        return own
    return best.proxy.lr


def loss(
    way: Way,
    space: SearchSpace,
    configs: Sequence[ModelConfig],
    own: float,
    num_images: int,
    table: Table,
    draws: int,
) -> float:
    """Points that the chosen rate loses against the best one, over all draws."""
    guess = 100 / configs[0].num_classes
    truth = np.nan_to_num(table, nan=guess).mean(axis=(0, 1)).tolist()
    half = len(configs) // 2
    pairs = itertools.product(range(half), range(half, len(configs)))
    lost = []
    for low, high in pairs:
        pair = [configs[low], configs[high]]
        places = {configs[index].key: index for index in (low, high)}
        for seed in range(draws):
            train = Drawn(table, places, space.config.proxy, seed)
            chosen = replayed(way, space, pair, own, num_images, train, seed)
            lost.append(max(truth) - truth[RATES.index(chosen)])
    return float(np.mean(lost))


def main() -> None:
    given = arguments()
    space = the_space(given)
    number, seeds = (2, 1) if given.quick else (given.networks, given.seeds)
    configs = varied_networks(space, number, 0)
    with folder_in_memory() as scratch:
        folder = Path(scratch) if given.quick else given.into
        book = Book(folder / f"{space.name}.jsonl", space.config.data.name)
        table = measure(space, configs, space.config.proxy.optimizer, RATES, seeds, book)
    show(
        ("network", *(f"{rate:g}" for rate in RATES)),
        [
            (str(index), *(f"{value:.2f}" for value in table[:, index].mean(axis=0)))
            for index in range(len(configs))
        ]
        + [("mean", *(f"{value:.2f}" for value in table.mean(axis=(0, 1))))],
    )
    ways = [way for way in WAYS if way.seeds < seeds]
    draws = 1 if given.quick else given.draws
    scored = SerialBackend(gpus=0).prepare(space).data.num_val_images or 1
    lost = {
        way.name: [loss(way, space, configs, own, scored, table, draws) for own in RATES]
        for way in ways
    }
    print()
    show(
        ("points lost, from a rate of", "trainings", *(f"{rate:g}" for rate in RATES), "mean"),
        [
            (
                way.name,
                str(way.trainings),
                *(f"{value:.2f}" for value in lost[way.name]),
                f"{np.mean(lost[way.name]):.2f}",
            )
            for way in ways
        ],
    )
    figures: Figures = {
        "space": space.name,
        **{f"{name}: points lost": rounded(float(np.mean(row))) for name, row in lost.items()},
    }
    if given.quick:
        conclude("tuning", True, figures, {})
        return
    name = "lost by the tuning, of what the space's own rate loses"
    share = {name: rounded(float(np.mean(lost[USED]) / np.mean(lost[OWN])))}
    conclude("tuning", False, {**figures, **share}, {name: {"max": 0.2}})


if __name__ == "__main__":
    main()
