"""Networks that may be proposed next, priced before anything is trained."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.trials import PlainTrial, RandomTrial, Refused, Trial
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.surrogate.features import facts_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_Value = TypeVar("_Value")
Params = Mapping[str, Any]
Mixers = tuple[tuple[str, ...], ...]
_VARIED = 8
_EARLY, _LEAST_FRESH = 100, 16


@dataclass(frozen=True)
class Proposal:
    """A network within the limits, and the draw that leads to it.

    Attributes:
        key: of its configuration.
        params: the answers to the draw's questions, by Optuna's names.
        distributions: what was on offer at each question.
        flops, num_params: what it costs.
        facts: see `facts_of`.
        mixers: the different ones of each stage.
        is_plain: whether it was drawn alike in all stages.
    """

    key: str
    params: Params
    distributions: Mapping[str, BaseDistribution]
    flops: int
    num_params: int
    facts: Mapping[str, float]
    mixers: Mixers
    is_plain: bool = field(default=False, compare=False)


class CandidatePool(Protocol):
    """Where a sampler chooses from."""

    def sample(self) -> Sequence[Proposal]:
        """Networks as the space draws them, to learn what they can look like."""

    def offer(self, known: Collection[str], parents: Sequence[Params]) -> Sequence[Proposal]:
        """Networks to choose from: none whose key is `known`; `parents` are worth varying."""

    def keep(self, best: Iterable[Proposal]) -> None:
        """Of what was offered, remember these."""


class SpacePool:
    """Random and plain draws of a space and variations of its best networks, renewed a little at
    each offer.

    A plain draw gives the same answer for all stages. Random ones seldom do: of those of a space
    with three stages and four mixers, one in fifty has the same given mixer in all stages. So
    without plain draws a short search hardly sees what is best everywhere.

    A draw takes much longer than computing costs and gain, so the best networks stay for the next
    offer. The first few of them are varied, too: a network that the model expects to be good is
    often close to one that it expects to be better, and chance alone seldom draws it. A short
    search has few offers, so each of its first hundred has many new draws. With n known networks
    their number is then as 100 / n, at least 16: a proposal after a thousand takes no longer.

    Args:
        space: what is drawn from; its limits are met.
        seed: of the draws.
        first: random draws to begin with; half as many plain ones follow.
        fresh: draws at each of the first hundred offers; half of them vary a parent or one of the
            best, a quarter are plain.
        size: how many of the best are remembered.
    """

    def __init__(
        self, space: SearchSpace, seed: int, *, first: int = 512, fresh: int = 128, size: int = 512
    ) -> None:
        self._space, self._random = space, random.Random(seed)
        self._first, self._fresh, self._size = first, fresh, size
        self._held: dict[str, Proposal] = {}
        self._best: list[Proposal] = []

    def sample(self) -> Sequence[Proposal]:
        count, self._first = self._first, 0
        self._draw(RandomTrial, count)
        self._draw(PlainTrial, count // 2)
        return list(self._held.values())

    def offer(self, known: Collection[str], parents: Sequence[Params]) -> Sequence[Proposal]:
        self.sample()
        fresh = self._fresh * _EARLY // max(len(known), _EARLY)
        fresh = max(fresh, min(self._fresh, _LEAST_FRESH))
        promising = [proposal.params for proposal in self._best if proposal.key not in known]
        parents = [*parents, *promising]
        plain, varied = fresh // 4, fresh // 2 if parents else 0
        self._draw(PlainTrial, plain)
        self._draw(RandomTrial, fresh - plain - varied)
        for _ in range(varied):
            self._vary(self._random.choice(parents))
        return [proposal for key, proposal in self._held.items() if key not in known]

    def keep(self, best: Iterable[Proposal]) -> None:
        kept = list(best)[: self._size]
        self._best = kept[:_VARIED]
        self._held = {proposal.key: proposal for proposal in kept}

    def _draw(self, source: Callable[[int], Trial], count: int) -> None:
        for _ in range(count):
            self._hold(_Draw(source(self._seed())), is_plain=source is PlainTrial)

    def _vary(self, parent: Params) -> None:
        rate = 2 / max(2, len(parent))
        answers = RandomTrial(self._seed())
        self._hold(_Draw(answers, parent, lambda: self._random.random() < rate))

    def _seed(self) -> int:
        return self._random.getrandbits(32)

    def _hold(self, draw: _Draw, is_plain: bool = False) -> None:
        found = _propose(self._space, draw)
        if found is None:
            return
        held = self._held.setdefault(found.key, found)
        if is_plain:
            self._held[found.key] = replace(held, is_plain=True)


def mixers_of(config: ModelConfig) -> Mixers:
    """The different token mixers of each stage."""
    return tuple(stage.kinds for stage in config.stages)


class FixedPool:
    """A given set of networks, e.g. those of a recorded table."""

    def __init__(self, proposals: Iterable[Proposal]) -> None:
        self._all = list(proposals)

    def sample(self) -> Sequence[Proposal]:
        return self._all

    def offer(self, known: Collection[str], parents: Sequence[Params]) -> Sequence[Proposal]:
        return [proposal for proposal in self._all if proposal.key not in known]

    def keep(self, best: Iterable[Proposal]) -> None:
        pass


def propose_like(space: SearchSpace, params: Params) -> Proposal | None:
    """The network that the answers `params` lead to, if the space has it."""
    return _propose(space, _Draw(RandomTrial(0), params))


def _propose(space: SearchSpace, draw: _Draw) -> Proposal | None:
    """The network that `draw` leads to; None when it breaks a rule or a limit."""
    try:
        config = space.suggest(draw)
    except Refused:
        return None
    cost = closed_form(config)
    if over_limits(cost, space.config.limits):
        return None
    facts = facts_of(config, cost)
    return Proposal(
        config.key,
        draw.params,
        draw.distributions,
        cost.flops,
        cost.num_params,
        facts,
        mixers_of(config),
    )


class _Draw:
    """A draw that takes down its answers; with a parent, most of them are the parent's.

    Args:
        source: gives the answers.
        parent: another draw's params. The options of a question may have been narrowed by earlier
            answers (`groups@0,1`), so only what stands before `@` has to be the same.
        is_new: asked at each question that the parent answers; whether it gets a new answer.
    """

    def __init__(
        self, source: Trial, parent: Params | None = None, is_new: Callable[[], bool] = bool
    ) -> None:
        self._source, self._is_new = source, is_new
        self._parent = {name.partition("@")[0]: value for name, value in (parent or {}).items()}
        self.params: dict[str, Any] = {}
        self.distributions: dict[str, BaseDistribution] = {}

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        from optuna.distributions import CategoricalDistribution

        self.distributions[name] = CategoricalDistribution(choices)
        return self._answer(name, lambda: self._source.suggest_categorical(name, choices))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        from optuna.distributions import IntDistribution

        self.distributions[name] = IntDistribution(low, high, log=log, step=step)
        ask = self._source.suggest_int
        return self._answer(name, lambda: ask(name, low, high, step=step, log=log))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        from optuna.distributions import FloatDistribution

        self.distributions[name] = FloatDistribution(low, high, log=log, step=step)
        ask = self._source.suggest_float
        return self._answer(name, lambda: ask(name, low, high, step=step, log=log))

    def _answer(self, name: str, ask: Callable[[], _Value]) -> _Value:
        value: Any = self._parent.get(name.partition("@")[0])
        if value is None or self._is_new() or not self._may(name, value):
            value = ask()
        self.params[name] = value
        return value  # type: ignore[no-any-return]

    def _may(self, name: str, value: Any) -> bool:
        """Whether the parent's answer is on offer here."""
        offered = self.distributions[name]
        try:
            return offered._contains(offered.to_internal_repr(value))
        except ValueError:
            return False
