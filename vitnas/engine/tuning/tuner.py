"""Which recipe is tried next, on which networks, and what it is worth.

A recipe is scored in points above the space's own recipe: the mean over the networks of the
difference in top-1, each pair trained with the same seed. So a network counts alike whatever its
size or its own accuracy is. A training that does not end well counts as a guess among the classes.

Optuna's TPE proposes recipes, four at a time. All four are trained on two networks. Then its
Wilcoxon pruner drops those that are worse than the best recipe so far on both, and so on with each
further network; the dearest network comes last. What is tried follows from the seed and the
answers, whatever the number of workers, so that a second process asks the same and finds the
answers of the first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.tuning.knobs import Recipes
from vitnas.noise import binomial_error
from vitnas.seeds import derive_seed

if TYPE_CHECKING:
    import optuna

WAVE = 4
"""Recipes that are tried side by side."""
_TOGETHER = 2
_WORSE = 0.3  # one-sided p; 0.25 where both of two networks are worse
_STARTUP = 8

Train = Callable[[Sequence[Request]], Mapping[str, Answer] | None]
"""Answers by the requests' keys; None once the time is up."""


@dataclass
class Tried:
    """A recipe and what it gave.

    Attributes:
        number: counted from 0; 0 is the space's own recipe.
        proxy: the recipe.
        gains: points above the space's own recipe, by the network's number; only of some networks
            if it was stopped.
        answers: of the same networks.
    """

    number: int
    proxy: ProxyConfig
    gains: dict[int, float] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        """The mean of the gains."""
        return fmean(self.gains.values())


@dataclass(frozen=True)
class Gain:
    """What the best recipe gives with seeds that it was not chosen by.

    Attributes:
        points: above the space's own recipe in top-1, the mean over the networks.
        error: its standard error in points, over the networks and from the number of images.
    """

    points: float
    error: float

    @property
    def is_sure(self) -> bool:
        """Whether it is larger than its standard error."""
        return self.points > self.error


class Tuner:
    """Tries recipes.

    Args:
        recipes: what can be tried.
        networks: what they are tried on, cheapest first.
        num_classes: of the images.
        seed: of the proposals and of the trainings.
        train: does trainings.
        told: called with each recipe that has been tried.

    Attributes:
        tried: all that ended, in their order.
    """

    def __init__(
        self,
        recipes: Recipes,
        networks: Sequence[ModelConfig],
        num_classes: int,
        seed: int,
        train: Train,
        told: Callable[[Tried], None] = lambda tried: None,
    ) -> None:
        self.tried: list[Tried] = []
        self._recipes, self._networks, self._seed = recipes, networks, seed
        self._guess = 100.0 / num_classes
        self._train, self._told = train, told
        self._own: dict[int, float] = {}
        self._study = _new_study(derive_seed(seed, "recipes"))
        for params in recipes.first():
            self._study.enqueue_trial(params)

    def run(self, num_trials: int) -> None:
        """Try so many recipes, or fewer where the time is up before."""
        asked = 0
        while asked < num_trials:
            wave = min(WAVE, num_trials - asked)
            if not self._wave([self._study.ask() for _ in range(wave)]):
                return
            asked += wave

    @property
    def best(self) -> Tried:
        """The best of those that were trained on all networks; the space's own where none is
        better."""
        complete = [one for one in self.tried if len(one.gains) == len(self._networks)]
        return max(complete, key=lambda one: one.gain)

    def compare(self, one: Tried, num_images: int, seeds: int = 1) -> Gain:
        """Train a recipe and the space's own again with other seeds.

        Args:
            one: the recipe.
            num_images: of the scoring split.
            seeds: trainings of each network by each of the two.
        """
        found = self._again([self._recipes.own, one.proxy], seeds)
        assert found is not None
        own, new = found
        return gain_of(own, new, num_images, seeds)

    def compare_epochs(self, proxy: ProxyConfig, num_images: int) -> dict[int, Gain]:
        """Train a recipe for half and for twice its epochs, with the first seed of `compare`.

        Args:
            proxy: the recipe.
            num_images: of the scoring split.

        Returns:
            What each number of epochs gains on the recipe's own; none once the time is up.
        """
        numbers = {round(proxy.epochs * factor) for factor in (0.5, 2.0)} - {0, proxy.epochs}
        others = sorted(numbers)
        found = self._again([proxy, *map(proxy.for_epochs, others)])
        if found is None:
            return {}
        own, *new = found
        gains = (gain_of(own, one, num_images) for one in new)
        return dict(zip(others, gains, strict=True))

    def _again(self, proxies: Sequence[ProxyConfig], seeds: int = 1) -> list[list[float]] | None:
        """Top-1 of all networks by each recipe, the mean over seeds that chose none; None once the
        time is up."""
        asked = [
            [
                [self._request(p, index, seed) for seed in range(1, seeds + 1)]
                for index in range(len(self._networks))
            ]
            for p in proxies
        ]
        answers = self._train([one for row in asked for networks in row for one in networks])
        if answers is None:
            return None
        return [
            [fmean(self._top1(answers[one.key]) for one in networks) for networks in row]
            for row in asked
        ]

    def _wave(self, trials: list[optuna.Trial]) -> bool:
        """Try recipes side by side; False if the time is up."""
        running = {trial.number: (trial, self._propose(trial)) for trial in trials}
        for networks in _steps(len(self._networks)):
            if not self._train_on(networks, [one for _, one in running.values()]):
                return False
            for trial, one in list(running.values()):
                for index in networks:
                    trial.report(one.gains[index], index)
                if trial.should_prune():
                    self._end(*running.pop(trial.number))
        for trial, one in running.values():
            self._end(trial, one)
        return True

    def _propose(self, trial: optuna.Trial) -> Tried:
        proxy = self._recipes.suggest(trial)
        return Tried(trial.number, proxy if trial.number else self._recipes.own)

    def _train_on(self, networks: Sequence[int], recipes: Sequence[Tried]) -> bool:
        pairs = [(one, index) for index in networks for one in recipes]
        requests = [self._request(one.proxy, index, 0) for one, index in pairs]
        answers = self._train(requests)
        if answers is None:
            return False
        for (one, index), request in zip(pairs, requests, strict=True):
            answer = answers[request.key]
            top1 = self._top1(answer)
            if one.number == 0:
                self._own[index] = top1
            one.gains[index] = top1 - self._own[index]
            one.answers[index] = answer
        return True

    def _end(self, trial: optuna.Trial, one: Tried) -> None:
        """Tell the study a recipe's mean, also of a stopped one: TPE learns from it."""
        self._study.tell(trial, one.gain)
        self.tried.append(one)
        self._told(one)

    def _request(self, proxy: ProxyConfig, index: int, repeat: int) -> Request:
        network = self._networks[index]
        return Request(network, proxy, derive_seed(self._seed, "tune", network.key, repeat))

    def _top1(self, answer: Answer) -> float:
        return self._guess if answer.top1 is None else answer.top1


def gain_of(own: Sequence[float], new: Sequence[float], num_images: int, seeds: int = 1) -> Gain:
    """What `new` gains on `own`, network by network.

    The error is the larger of two: the standard error of the differences, and the binomial error of
    the scoring images. Each seed counts as images of its own there, which is nearly right: an image
    that is hard is so with both recipes, and that cancels in the difference.

    Args:
        own, new: top-1 in percent of the same networks, the mean over the seeds.
        num_images: of the scoring split.
        seeds: trainings behind each of them.
    """
    gains = [after - before for before, after in zip(own, new, strict=True)]
    scored = num_images * seeds
    by_images = sqrt(sum(binomial_error(top1, scored) ** 2 for top1 in (*own, *new)))
    spread = stdev(gains) / sqrt(len(gains)) if len(gains) > 1 else 0.0
    return Gain(fmean(gains), max(spread, by_images / len(gains)))


def _steps(number: int) -> list[list[int]]:
    """Numbers of networks, cheapest first, in the order of training: every second one, then the
    rest; the first two together."""
    order = [*range(0, number, 2), *range(1, number, 2)]
    return [order[:_TOGETHER], *([index] for index in order[_TOGETHER:])]


def _new_study(seed: int) -> optuna.Study:
    """A study in memory: with the answers that are kept, it makes the same proposals again."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=_STARTUP
        )
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=_WORSE)
    return optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
