"""A sampler that proposes only networks of a given set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.samplers import BaseSampler, RandomSampler

from vitnas.config.space import SearchSpace
from vitnas.config.trials import Refused
from vitnas.cost.closed_form import closed_form
from vitnas.engine.samplers.planned import PlannedSampler
from vitnas.engine.samplers.pool import Proposal
from vitnas.surrogate.features import Encoder, facts_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial

_TRIES = 10


class HeldSampler(PlannedSampler):
    """Asks a sampler for a network of the space, and proposes the nearest network of a set.

    The distance is the sum of absolute differences of the configuration's standardised columns (see
    `Encoder`; costs are left out). Networks that the study knows are not proposed. Ties are broken
    at random. The study holds the parameters of the proposed network, so the sampler learns from
    the networks that were trained. `RandomSampler` is not asked: an unknown network is drawn, each
    with the same probability.

    Args:
        sampler: the sampler to ask.
        space: the space of the networks.
        proposals: the set.
        seed: seed of random choices.
    """

    def __init__(
        self, sampler: BaseSampler, space: SearchSpace, proposals: Sequence[Proposal], seed: int
    ) -> None:
        super().__init__(sampler)
        self._space, self._all = space, list(proposals)
        self._random = np.random.default_rng(seed)
        self._encoder = Encoder([_without_costs(p.facts) for p in self._all])
        self._rows = self._encoder.encode([p.facts for p in self._all])

    def choose(self, study: Study, trial: FrozenTrial) -> Proposal | None:
        known = {t.user_attrs.get("network", {}).get("key") for t in study.get_trials(False)}
        unknown = [index for index, p in enumerate(self._all) if p.key not in known]
        return self._all[self._nearest(study, trial, unknown)] if unknown else None

    def after_trial(self, *arguments: Any, **named: Any) -> None:
        self._otherwise.after_trial(*arguments, **named)

    def _nearest(self, study: Study, trial: FrozenTrial, unknown: Sequence[int]) -> int:
        wish = None
        if not isinstance(self._otherwise, RandomSampler):
            wish = self._wish(study, trial)
        if wish is None:
            return int(self._random.choice(unknown))
        away = np.abs(self._rows[unknown] - self._encoder.encode([wish])).sum(axis=1)
        nearest = np.flatnonzero(away < away.min() + 1e-9)
        return unknown[int(self._random.choice(nearest))]

    def _wish(self, study: Study, trial: FrozenTrial) -> dict[str, float] | None:
        """The sampler's own proposal; None if it breaks the rules in all tries."""
        for _ in range(_TRIES):
            try:
                config = self._space.suggest(_Asking(self._otherwise, study, trial))
            except Refused:
                continue
            return facts_of(config, closed_form(config))
        return None


class _Asking:
    """Has those methods of Optuna's `Trial` that a draw needs. A sampler answers them."""

    def __init__(self, sampler: BaseSampler, study: Study, trial: FrozenTrial) -> None:
        self._sampler, self._study, self._trial = sampler, study, trial
        self._offered = sampler.infer_relative_search_space(study, trial)
        self._params = sampler.sample_relative(study, trial, self._offered)

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        from optuna.distributions import CategoricalDistribution

        return self._answer(name, CategoricalDistribution(choices))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        from optuna.distributions import IntDistribution

        return int(self._answer(name, IntDistribution(low, high, log=log, step=step)))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        from optuna.distributions import FloatDistribution

        return float(self._answer(name, FloatDistribution(low, high, log=log, step=step)))

    def _answer(self, name: str, offered: BaseDistribution) -> Any:
        value = self._params.get(name)
        if value is not None and offered._contains(offered.to_internal_repr(value)):
            return value
        return self._sampler.sample_independent(self._study, self._trial, name, offered)


def _without_costs(facts: Any) -> dict[str, float]:
    return {name: value for name, value in facts.items() if name.startswith(".")}
