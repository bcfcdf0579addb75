"""What a calibration trains: which networks, how long, and how else for less."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from vitnas.calibration.options import TIMES, CalibrationOptions
from vitnas.calibration.result import PROXY
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.training import ProxyConfig
from vitnas.cost.closed_form import closed_form
from vitnas.cost.survey import networks_within
from vitnas.engine.batch.request import Request
from vitnas.errors import ConfigError
from vitnas.seeds import derive_seed
from vitnas.words import plural

_IMAGE_SHARES = ((1, 2), (3, 4))
ImageHW = tuple[int, int]
Tree = dict[str, Any]


@dataclass(frozen=True)
class PlannedNetwork:
    """A network of the calibration.

    Attributes:
        config: the network.
        flops: multiply-adds of one image.
        num_params: trainable parameters.
    """

    config: ModelConfig
    flops: int
    num_params: int


@dataclass(frozen=True)
class Fidelity:
    """A training that is cheaper than the long one.

    Attributes:
        name: short, for people.
        proxy: how it trains.
        reduced: the tree of the network that is trained in place of a network; None = itself.
    """

    name: str
    proxy: ProxyConfig
    reduced: Callable[[ModelConfig], Tree] | None = None

    def request(self, network: ModelConfig) -> Request:
        """Its training of a network. The seed differs from those of all other trainings."""
        subject = network
        if self.reduced is not None:
            subject = ModelConfig.model_validate(self.reduced(network))
        return Request(
            subject,
            self.proxy,
            derive_seed("calibration", network.key, self.name),
            some_classes=subject.num_classes < network.num_classes,
        )


@dataclass(frozen=True)
class CalibrationPlan:
    """Everything that is trained.

    Attributes:
        networks: by rising FLOPs.
        long: the long training.
        seeds: long trainings of each network.
        fidelities: the cheaper ones; the first is the space's own proxy.
        notices: lines on what is left out.
    """

    networks: tuple[PlannedNetwork, ...]
    long: ProxyConfig
    seeds: int
    fidelities: tuple[Fidelity, ...]
    notices: tuple[str, ...] = ()

    def long_request(self, network: PlannedNetwork, number: int) -> Request:
        """A long training of a network: `number` from 0 to `seeds` - 1."""
        seed = derive_seed("calibration", network.config.key, "long", number)
        return Request(network.config, self.long, seed)

    def score_request(self, network: PlannedNetwork) -> Request:
        """Its scores at initialisation."""
        seed = derive_seed("calibration", network.config.key, "scores")
        return Request(network.config, self.fidelities[0].proxy, seed, zero_cost=True)

    def requests(self) -> Iterator[tuple[str, Request]]:
        """Every training with its name, a network after the other: they see the same load."""
        for number, network in enumerate(self.networks):
            of = f"network {number}"
            yield f"{of}, scores", self.score_request(network)
            for fidelity in self.fidelities:
                yield f"{of}, {fidelity.name}", fidelity.request(network.config)
            for seed in range(self.seeds):
                yield f"{of}, long, seed {seed}", self.long_request(network, seed)

    @property
    def image_sizes(self) -> tuple[ImageHW, ...]:
        """(H, W) of all images that are trained on."""
        sizes = (request.subject.image_hw for _, request in self.requests())
        return tuple(dict.fromkeys(sizes))


def make_plan(space: SearchSpace, options: CalibrationOptions) -> CalibrationPlan:
    """The plan for these options.

    Raises:
        ConfigError: the space has fewer networks, or the long training is not longer.
    """
    proxy = space.config.proxy
    epochs = options.long_epochs or TIMES * proxy.epochs
    if epochs <= proxy.epochs:
        raise ConfigError(
            f"must be above the {proxy.epochs} epochs of the space's proxy",
            address="--long-epochs",
            value=epochs,
            nearest=proxy.epochs + 1,
        )
    networks = spread_networks(space, options.networks)
    found = [*_shorter(proxy), *_reduced(space, networks)]
    return CalibrationPlan(
        networks,
        proxy.for_epochs(epochs),
        options.seeds,
        tuple(one for one in found if isinstance(one, Fidelity)),
        tuple(one for one in found if isinstance(one, str)),
    )


def spread_networks(space: SearchSpace, number: int) -> tuple[PlannedNetwork, ...]:
    """So many networks within the limits, evenly over log FLOPs; always the same ones.

    Raises:
        ConfigError: fewer are found.
    """
    found = [
        PlannedNetwork(config, cost.flops, cost.num_params)
        for config, cost in networks_within(space)
    ]
    if len(found) < number:
        rule = f"{space.name} has {len(found)} networks within its limits"
        raise ConfigError(rule, address="--networks", value=number, nearest=len(found))
    found.sort(key=lambda network: (network.flops, network.config.key))
    low, high = math.log(found[0].flops), math.log(found[-1].flops)
    chosen = []
    for step in range(number):
        goal = low + (high - low) * step / (number - 1)
        chosen.append(min(found, key=lambda network: abs(math.log(network.flops) - goal)))
        found.remove(chosen[-1])
    return tuple(sorted(chosen, key=lambda network: network.flops))


def _shorter(proxy: ProxyConfig) -> Iterator[Fidelity]:
    """Trainings of the networks as they are."""
    yield Fidelity(PROXY, proxy)
    for epochs in sorted({proxy.epochs // 2, proxy.epochs // 4} - {0}, reverse=True):
        yield Fidelity(plural(epochs, "epoch"), proxy.for_epochs(epochs))
    half = proxy.model_copy(update={"train_fraction": proxy.train_fraction / 2})
    yield Fidelity("half of the images", half)


def _reduced(space: SearchSpace, networks: Sequence[PlannedNetwork]) -> Iterator[Fidelity | str]:
    """Trainings of reduced networks; for those that cannot be, why."""
    proxy, first = space.config.proxy, networks[0].config
    shares = next((s for s in _IMAGE_SHARES if _can_all(networks, partial(_smaller, s))), None)
    if shares is None:
        yield "smaller images: left out, not every network can read them"
    else:
        height, width = (side * shares[0] // shares[1] for side in first.image_hw)
        size = f"{height}" if height == width else f"{height} x {width}"
        yield Fidelity(f"images of {size} px", proxy, partial(_smaller, shares))
    if _can_all(networks, _narrower):
        yield Fidelity("half of the width", proxy, _narrower)
    else:
        yield "half of the width: left out, not every network can have it"
    if first.num_classes < 4:
        yield "half of the classes: left out, there are fewer than four"
    elif proxy.distill.teacher is not None:
        yield "half of the classes: left out, the teacher knows all of them"
    elif space.config.data.folds > 1 and proxy.train_fraction < 1:
        yield "half of the classes: left out, folds are of all images"
    else:
        yield Fidelity("half of the classes", proxy, _of_half_the_classes)


def _smaller(shares: tuple[int, int], network: ModelConfig) -> Tree:
    """The same network for images of a share of the sides: numerator and denominator."""
    height, width = (max(1, side * shares[0] // shares[1]) for side in network.image_hw)
    return network.to_tree() | {"img_size": height if height == width else [height, width]}


def _narrower(network: ModelConfig) -> Tree:
    """The same network with half of the channels in each stage, in whole heads; one head is
    halved itself."""
    tree = network.to_tree()
    for stage, whole in zip(tree["stages"], network.stages, strict=True):
        if stage.get("head_dim") == whole.embed_dim:
            stage["head_dim"] //= 2
        unit = stage.get("head_dim") or stage.get("num_heads") or 1
        stage["embed_dim"] = unit * max(1, round(whole.embed_dim / 2 / unit))
    return tree


def _of_half_the_classes(network: ModelConfig) -> Tree:
    """The same network for every second class (`Images.with_classes`)."""
    return network.to_tree() | {"num_classes": -(-network.num_classes // 2)}


def _can_all(networks: Sequence[PlannedNetwork], reduced: Callable[[ModelConfig], Tree]) -> bool:
    return all(_is_valid(reduced(network.config)) for network in networks)


def _is_valid(tree: Tree) -> bool:
    try:
        closed_form(ModelConfig.model_validate(tree))
    except (ValidationError, ConfigError):
        return False
    return True
