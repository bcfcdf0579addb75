"""What proposes the next network: Optuna's samplers, seeded for a session of a run."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

SamplerName = Literal["tpe", "nsga2", "random"]
SAMPLERS: tuple[SamplerName, ...] = ("tpe", "nsga2", "random")


def make_sampler(name: SamplerName, seed: int) -> BaseSampler:
    """Optuna's sampler of that name for two objectives.

    `tpe` starts with ten random draws and knows of trials still running (constant liar), so that
    parallel workers do not all try the same corner.
    """
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if name == "tpe":
            return optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=10, multivariate=False, constant_liar=True
            )
        if name == "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed, population_size=20)
        return optuna.samplers.RandomSampler(seed=seed)
