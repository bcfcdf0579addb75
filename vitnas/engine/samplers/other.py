"""A sampler of another package: it is made, and shows that it can propose for this search."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import optuna
from optuna.samplers import BaseSampler

from vitnas.config.costs import DEFAULT_COSTS, directions_of
from vitnas.config.trials import Refused
from vitnas.errors import ConfigError

if TYPE_CHECKING:
    from vitnas.config.space import SearchSpace


def sampler_of(name: str, found: Any, seed: int, space: SearchSpace | None) -> BaseSampler:
    """The sampler that `found` gives; another one like it has proposed a network of the space.

    Args:
        name: what a user wrote, for errors.
        found: a function of the seed and the space; or a sampler's class of Optuna's, which gets
            the seed alone.
        seed: of its random numbers.
        space: what it proposes from; None: it is not asked for a network.

    Raises:
        ConfigError: `found` fails or gives no sampler; or the sampler fails, as those of Optuna do
            that know one objective only.
    """
    made = _made(name, found, seed, space)
    costs = DEFAULT_COSTS if space is None else space.config.objectives.costs
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        directions=directions_of(costs), sampler=_made(name, found, seed, space)
    )
    try:
        trial = study.ask()
        if space is not None:
            with suppress(Refused):
                space.suggest(trial)
    except Exception as error:
        raise _failure(name, error) from error
    return made


def _made(name: str, found: Any, seed: int, space: SearchSpace | None) -> BaseSampler:
    is_optunas = isinstance(found, type) and found.__module__.partition(".")[0] == "optuna"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            made = found(seed=seed) if is_optunas else found(seed, space)
    except Exception as error:
        raise _failure(name, error) from error
    if isinstance(made, BaseSampler):
        return made
    rule = f"gives {type(made).__name__}, not a sampler of Optuna's kind"
    raise ConfigError(rule, address="sampler", value=name)


def _failure(name: str, error: Exception) -> ConfigError:
    rule = f"fails: {type(error).__name__}: {error}"
    return ConfigError(rule, address="sampler", value=name)
