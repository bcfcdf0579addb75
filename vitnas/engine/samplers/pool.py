"""Networks that may be proposed next, priced before anything is trained."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vitnas.config.space import SearchSpace
from vitnas.config.trials import RandomTrial, Refused
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.surrogate.features import facts_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_Value = TypeVar("_Value")
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Proposal:
    """A network within the limits, and the draw that leads to it.

    Attributes:
        key: of its configuration.
        params: the answers to the draw's questions, by Optuna's names.
        distributions: what was on offer at each question.
        flops, num_params: what it costs.
        facts: see `facts_of`.
    """

    key: str
    params: Params
    distributions: Mapping[str, BaseDistribution]
    flops: int
    num_params: int
    facts: Mapping[str, float]


class CandidatePool(Protocol):
    """Where a sampler chooses from."""

    def sample(self) -> Sequence[Proposal]:
        """Networks as the space draws them, to learn what they can look like."""

    def offer(self, known: Container[str], parents: Sequence[Params]) -> Sequence[Proposal]:
        """Networks to choose from: none whose key is `known`; `parents` are worth varying."""

    def keep(self, best: Iterable[Proposal]) -> None:
        """Of what was offered, remember these."""


class SpacePool:
    """Random draws of a space and variations of its best networks, renewed a little at each offer.

    A draw takes much longer than computing costs and gain, so the best networks stay for the next
    offer.

    Args:
        space: what is drawn from; its limits are met.
        seed: of the draws.
        first: draws to begin with.
        fresh: draws at each offer; half of them vary a parent.
        size: how many of the best are remembered.
    """

    def __init__(
        self, space: SearchSpace, seed: int, *, first: int = 256, fresh: int = 8, size: int = 512
    ) -> None:
        self._space, self._random = space, random.Random(seed)
        self._first, self._fresh, self._size = first, fresh, size
        self._held: dict[str, Proposal] = {}

    def sample(self) -> Sequence[Proposal]:
        count, self._first = self._first, 0
        self._add(None for _ in range(count))
        return list(self._held.values())

    def offer(self, known: Container[str], parents: Sequence[Params]) -> Sequence[Proposal]:
        self.sample()
        half = self._fresh // 2
        self._add(None for _ in range(self._fresh - half))
        self._add(self._random.choice(parents) if parents else None for _ in range(half))
        return [proposal for key, proposal in self._held.items() if key not in known]

    def keep(self, best: Iterable[Proposal]) -> None:
        kept = list(best)[: self._size]
        self._held = {proposal.key: proposal for proposal in kept}

    def _add(self, parents: Iterable[Params | None]) -> None:
        for parent in parents:
            draw = _Draw(self._random.getrandbits(32), parent, 2 / max(2, len(parent or ())))
            found = _propose(self._space, draw)
            if found is not None:
                self._held.setdefault(found.key, found)


class FixedPool:
    """A given set of networks, e.g. those of a recorded table."""

    def __init__(self, proposals: Iterable[Proposal]) -> None:
        self._all = list(proposals)

    def sample(self) -> Sequence[Proposal]:
        return self._all

    def offer(self, known: Container[str], parents: Sequence[Params]) -> Sequence[Proposal]:
        return [proposal for proposal in self._all if proposal.key not in known]

    def keep(self, best: Iterable[Proposal]) -> None:
        pass


def propose_like(space: SearchSpace, params: Params) -> Proposal | None:
    """The network that the answers `params` lead to, if the space has it."""
    return _propose(space, _Draw(0, params, rate=0.0))


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
    return Proposal(config.key, draw.params, draw.distributions, cost.flops, cost.num_params, facts)


class _Draw(RandomTrial):
    """A draw that takes down its answers; with a parent, most of them are the parent's.

    Args:
        seed: of the answers.
        parent: another draw's params. The options of a question may have been narrowed by earlier
            answers (`groups@0,1`), so only what stands before `@` has to be the same.
        rate: chance that a question gets a new answer.
    """

    def __init__(self, seed: int, parent: Params | None, rate: float) -> None:
        super().__init__(seed)
        self._parent = {name.partition("@")[0]: value for name, value in (parent or {}).items()}
        self._rate = rate
        self.params: dict[str, Any] = {}
        self.distributions: dict[str, BaseDistribution] = {}

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        from optuna.distributions import CategoricalDistribution

        self.distributions[name] = CategoricalDistribution(choices)
        return self._answer(name, lambda: super(_Draw, self).suggest_categorical(name, choices))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        from optuna.distributions import IntDistribution

        self.distributions[name] = IntDistribution(low, high, log=log, step=step)
        ask = super().suggest_int
        return self._answer(name, lambda: ask(name, low, high, step=step, log=log))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        from optuna.distributions import FloatDistribution

        self.distributions[name] = FloatDistribution(low, high, log=log, step=step)
        ask = super().suggest_float
        return self._answer(name, lambda: ask(name, low, high, step=step, log=log))

    def _answer(self, name: str, ask: Callable[[], _Value]) -> _Value:
        value: Any = self._parent.get(name.partition("@")[0])
        if value is None or self._random.random() < self._rate or not self._may(name, value):
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
