"""What proposes the next network, seeded for a session of a run."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from vitnas.config.space import SearchSpace

SamplerName = Literal["ehvi", "tpe", "nsga2", "random"]
SAMPLERS: tuple[SamplerName, ...] = ("ehvi", "tpe", "nsga2", "random")
DEFAULT_SAMPLER: SamplerName = "ehvi"


class SamplerFactory(Protocol):
    """Makes a sampler for a space; `make_sampler` is one."""

    def __call__(self, name: SamplerName, seed: int, space: SearchSpace) -> BaseSampler: ...


def make_sampler(name: SamplerName, seed: int, space: SearchSpace | None = None) -> BaseSampler:
    """The sampler of that name for two objectives or more.

    `ehvi` is vitnas's own (see `EHVISampler`) and needs the space; the others are Optuna's. `tpe`
    starts with ten random draws and knows of trials still running (constant liar), so that
    parallel workers do not all try the same corner.

    Raises:
        ValueError: `ehvi` without a space.
    """
    import optuna

    if name == "ehvi":
        from vitnas.engine.samplers.ehvi import EHVISampler
        from vitnas.engine.samplers.pool import SpacePool

        if space is None:
            raise ValueError("the sampler ehvi needs the space to propose from")
        costs, limits = space.config.objectives.costs, space.config.limits
        return EHVISampler(SpacePool(space, seed), seed, costs=costs, limits=limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if name == "tpe":
            return optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=10, multivariate=False, constant_liar=True
            )
        if name == "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed, population_size=20)
        return optuna.samplers.RandomSampler(seed=seed)
