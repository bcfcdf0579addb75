"""A sampler that chooses whole networks, not one answer after the other."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from optuna.samplers import BaseSampler

from vitnas.engine.samplers.pool import Proposal

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial


class PlannedSampler(BaseSampler):
    """Chooses a network for each trial; the questions that lead to it are its search space.

    Args:
        otherwise: the sampler that answers where no network is chosen.
    """

    def __init__(self, otherwise: BaseSampler) -> None:
        self._otherwise = otherwise
        self._plans: dict[int, Proposal] = {}

    @abstractmethod
    def choose(self, study: Study, trial: FrozenTrial) -> Proposal | None:
        """The network for `trial`; None where there is none to choose."""

    def reseed_rng(self) -> None:
        self._otherwise.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        plan = self.choose(study, trial)
        if plan is None:
            return {}
        self._plans[trial.number] = plan
        return dict(plan.distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        plan = self._plans.pop(trial.number, None)
        params = {} if plan is None else plan.params
        return {
            name: params[name]
            if name in params
            else self.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.items()
        }

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return self._otherwise.sample_independent(study, trial, param_name, param_distribution)
