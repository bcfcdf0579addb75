"""Finds the network of a state dict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from vitnas.config.design import ModelOrGraft
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.errors import ConfigError
from vitnas.nn.zoo.names import zoo_names
from vitnas.nn.zoo.weights.layout import Layout, Shapes
from vitnas.nn.zoo.weights.translate import Misfit, compare, expected


class Guess(NamedTuple):
    """The layout and network that are most similar to a state dict."""

    layout: Layout
    config: ModelOrGraft
    misfit: Misfit


def find_config(
    layout: Layout,
    layouts: Iterable[Layout],
    state: Mapping[str, Tensor],
    named: str | None = None,
    img_size: int | None = None,
) -> ModelOrGraft:
    """The one network of `layout` that `state` fits.

    Args:
        layout: the code from which the state dict comes.
        layouts: all codes; if this one is wrong, the error names the right one.
        state: the state dict.
        named: the network's name in the checkpoint.
        img_size: side of the images in pixels, if the shapes do not show it.

    Raises:
        ConfigError: no network fits; the error names missing and unexpected tensors and the likely
            network. Or several fit that compute different things.
    """
    fitting = _fitting(layout, state, img_size)
    if not fitting and img_size is not None:
        for config in _fitting(layout, state).values():  # only the size does not fit: its error
            if isinstance(config, ModelConfig):
                layout.fit(config, _shapes(state), img_size)
    if not fitting:
        raise no_fit(layout, layouts, state)
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    by_name = {config.name: config for config in fitting.values()}
    if (called := layout.model_called(named)) in by_name:
        return by_name[called]
    names = list(by_name)
    rule = f"is required: {', '.join(names)} have these shapes and compute different things"
    raise ConfigError(rule, address="--model")


def _fitting(
    layout: Layout, state: Mapping[str, Tensor], img_size: int | None = None
) -> dict[str, ModelOrGraft]:
    """Key -> network that `state` fits. If a network has two names, the first is used."""
    found: dict[str, ModelOrGraft] = {}
    for configs in _of_one_size(layout.infer(_shapes(state), img_size)):
        if compare(layout, configs[0], state).fits:
            for config in configs:
                found.setdefault(config.key, config)
    return found


def _of_one_size(configs: Iterable[ModelOrGraft]) -> list[list[ModelOrGraft]]:
    """`configs` in groups whose parts have the same sizes, and so the same shapes."""
    found: dict[object, list[ModelOrGraft]] = {}
    for config in configs:
        found.setdefault(_sizes(config), []).append(config)
    return list(found.values())


def _sizes(config: ModelOrGraft) -> object:
    """The same for networks of the same sizes; two grafts are not compared."""
    if isinstance(config, GraftFile):
        return config.key
    return tuple(row.params for row in closed_form(config).rows)


def check_fit(
    layout: Layout, layouts: Iterable[Layout], config: ModelOrGraft, state: Mapping[str, Tensor]
) -> None:
    """Raise `ConfigError` unless `state` fits `config`."""
    misfit = compare(layout, config, state)
    if not misfit.fits:
        raise no_fit(layout, layouts, state, Guess(layout, config, misfit))


def no_fit(
    layout: Layout,
    layouts: Iterable[Layout],
    state: Mapping[str, Tensor],
    tried: Guess | None = None,
) -> ConfigError:
    """The error for a state dict that does not fit the network that was tried."""
    tried = tried or guess([layout], state)
    rule = f"these are not {layout.name} weights of {tried.config.name}: {tried.misfit.text()}"
    nearest = guess(layouts, state)
    return ConfigError(rule + _hint(tried, nearest, _equals(nearest, state)))


def _hint(tried: Guess, nearest: Guess, equals: Sequence[str]) -> str:
    if max(nearest.misfit.share, tried.misfit.share) < 0.5:
        return "; no known network has similar weights"
    if nearest.misfit.share <= tried.misfit.share:
        return ""
    sure = "they fit" if nearest.misfit.fits else "the most similar is"
    hint = f"; {sure} --from {nearest.layout.name}"
    if len(equals) > 1:
        return f"{hint} and, by their shapes, each --model of {', '.join(equals)}"
    return f"{hint} --model {equals[0]}" if equals else hint


def _equals(nearest: Guess, state: Mapping[str, Tensor]) -> list[str]:
    """The zoo's names of a guess. If `state` fits it, these are all networks with its shapes."""
    if not nearest.misfit.fits:
        return [name for name in [nearest.config.name] if name in zoo_names()]
    fitting = _fitting(nearest.layout, state).values()
    return [config.name for config in fitting if config.name in zoo_names()]


def guess(layouts: Iterable[Layout], state: Mapping[str, Tensor]) -> Guess:
    """The network that fits most of the tensors.

    Only layouts whose tensor names are similar enough are tried. Among networks of the same sizes
    only the first is built. If two layouts fit equally well, the code that has the network wins.
    """
    theirs = _patterns(state)
    candidates = [(layout, _candidates(layout, _shapes(state))) for layout in layouts]
    alike = [_alike(layout, configs, theirs) for layout, configs in candidates]
    found = [
        Guess(layout, config, compare(layout, config, state))
        for (layout, configs), share in zip(candidates, alike, strict=True)
        if share >= max(alike) - 0.1
        for config, *_ in _of_one_size(configs)
    ]
    return max(found, key=lambda one: (one.misfit.share, one.layout.has(one.config)))


def _candidates(layout: Layout, shapes: Shapes) -> Sequence[ModelOrGraft]:
    return layout.infer(shapes) or [layout.zoo(name) for name in layout.models()]


def _alike(layout: Layout, configs: Sequence[ModelOrGraft], theirs: set[str]) -> float:
    """Share of tensor names, without numbers, that a state dict and `layout` have in common.

    0 to 1. It is the larger share of the layout's first and last network, because timm's layout
    has two families.
    """
    shares = []
    for config in {0: configs[0], -1: configs[-1]}.values():
        ours = _patterns(
            name for ours in expected(config) for name in layout.source(ours, config, {}).names
        )
        shares.append(len(ours & theirs) / len(ours | theirs))
    return max(shares)


def _shapes(state: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(value.shape) for name, value in state.items()}


def _patterns(names: Iterable[str]) -> set[str]:
    return {re.sub(r"\d+", "#", name) for name in names}
