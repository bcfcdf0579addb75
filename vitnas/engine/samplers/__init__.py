"""What proposes the next network, seeded for a session of a run: one line for each sampler.

Another package announces a factory under `vitnas.samplers`, or an option names its path. vitnas
calls `factory(seed, space)`, which returns an Optuna sampler; see `other`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from vitnas import plugins

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from vitnas.config.space import SearchSpace

SamplerName = str
DEFAULT_SAMPLER = "ehvi"
GROUP = "vitnas.samplers"
"""The entry point group under which packages announce samplers."""

Make = Callable[[int, Any], Any]
"""From a seed and a `SearchSpace` to an Optuna sampler for two objectives or more."""


class SamplerFactory(Protocol):
    """Makes a sampler for a space; `make_sampler` is one."""

    def __call__(self, name: str, seed: int, space: SearchSpace) -> BaseSampler: ...


class Sampler(NamedTuple):
    """A sampler.

    Attributes:
        text: what it does.
        make: its factory.
        colour: in plots.
        at_random: how many networks it draws at random before its model is asked; None where these
            are not drawn from the whole space alike.
    """

    text: str
    make: Make
    colour: str
    at_random: float | None = None


def _ehvi(seed: int, space: SearchSpace | None) -> BaseSampler:
    from vitnas.engine.samplers.ehvi import EHVISampler
    from vitnas.engine.samplers.pool import SpacePool

    if space is None:
        raise ValueError("the sampler ehvi needs the space to propose from")
    costs, limits = space.config.objectives.costs, space.config.limits
    return EHVISampler(SpacePool(space, seed), seed, costs=costs, limits=limits)


def _tpe(seed: int, space: SearchSpace | None) -> BaseSampler:
    """It knows of trials still running (constant liar), so that parallel workers differ."""
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed, n_startup_trials=10, multivariate=False, constant_liar=True)


def _nsga2(seed: int, space: SearchSpace | None) -> BaseSampler:
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(seed=seed, population_size=20)


def _random(seed: int, space: SearchSpace | None) -> BaseSampler:
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seed)


SAMPLERS: dict[str, Sampler] = {
    "ehvi": Sampler("expected hypervolume improvement, costs known exactly", _ehvi, "#3b78d8"),
    "tpe": Sampler("Optuna's TPE, ten random draws first", _tpe, "#0f9d94", 10),
    "nsga2": Sampler("Optuna's NSGA-II, populations of 20", _nsga2, "#8059d6", 20),
    "random": Sampler("draws at random", _random, "#e0762a", inf),
}


def check_sampler(name: str, address: str = "sampler") -> None:
    """Make sure that there is a sampler of that name; imports nothing.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    if name not in SAMPLERS:
        plugins.path_of(name, GROUP, SAMPLERS, what="sampler", address=address)


def check_proposes(name: str, space: SearchSpace) -> None:
    """Make sure that the sampler of another package proposes networks of a space.

    Raises:
        ConfigError: it fails, or is no sampler.
    """
    if name not in SAMPLERS:
        make_sampler(name, 0, space)


def colour(name: str) -> str:
    """The sampler's colour in plots."""
    return SAMPLERS[name].colour if name in SAMPLERS else "#8b8f97"


def make_sampler(name: str, seed: int, space: SearchSpace | None = None) -> BaseSampler:
    """The sampler of that name for two objectives or more; `ehvi` needs the space.

    Raises:
        ConfigError: there is no sampler of that name; or another package's fails or is none.
    """
    import optuna

    if name not in SAMPLERS:
        from vitnas.engine.samplers.other import sampler_of

        path = plugins.path_of(name, GROUP, SAMPLERS, what="sampler", address="sampler")
        return sampler_of(name, plugins.load(path, address="sampler"), seed, space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        made: BaseSampler = SAMPLERS[name].make(seed, space)
    return made
