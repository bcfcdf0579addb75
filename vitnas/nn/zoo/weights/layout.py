"""What is said of another code's weights: which networks it has, and where each tensor is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn.zoo.names import put_at, zoo_config

if TYPE_CHECKING:
    from torch import Tensor

Shapes = Mapping[str, Sequence[int]]
"""Name in a state dict -> shape of the tensor."""


@dataclass(frozen=True)
class Source:
    """Where one of our tensors is in a state dict of another code.

    Attributes:
        names: its name there; several where that code saves one tensor once for every use of it.
        behind: tensors that are joined behind it along the first axis.
        order: brings it into our shape, where that is more than axes of length one.
    """

    names: tuple[str, ...]
    behind: tuple[str, ...] = ()
    order: Callable[[Tensor], Tensor] | None = None


class Layout(ABC):
    """The state dicts of one code, as facts about its names and shapes; without torch.

    Attributes:
        name: what `--from` calls it.
        title: which code it is, for people.
        fixed: the options that `fit` sets to what this code computes, by address or last name.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    fixed: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def models(self) -> tuple[str, ...]:
        """The zoo's models that this code has."""

    @abstractmethod
    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        """`config` as a checkpoint with these shapes has it, and as this code computes it.

        Classes, channels and size of the images come from the shapes where they are there; what the
        code has as a constant is set. Everything else stays.

        Args:
            config: a model of the zoo or of the user's.
            shapes: of the checkpoint; tensors may be missing.
            img_size: the size of the images, where the shapes leave it open.

        Raises:
            ConfigError: the result is no network, or `img_size` is not the checkpoint's.
        """

    @abstractmethod
    def source(self, name: str, config: ModelConfig, shapes: Shapes) -> Source:
        """Where the tensor `name` of our network `config` is."""

    def options(self, model: str) -> dict[str, Any]:
        """What this code passes to the network that the zoo calls `model`, beside its shape."""
        return {}

    def zoo(self, model: str) -> ModelConfig:
        """The zoo's model as this code has it."""
        return revised(zoo_config(model), self.options(model))

    def infer(self, shapes: Shapes, img_size: int | None = None) -> list[ModelConfig]:
        """The networks that these shapes may be of; none if of no network of this code."""
        found = []
        for model in self.models():
            try:
                found.append(self.fit(self.zoo(model), shapes, img_size))
            except ConfigError:
                continue
        return found

    def model_called(self, name: str | None) -> str | None:
        """The zoo's name of what this code calls `name`, where that says more than shapes do."""
        return None

    def has(self, config: ModelConfig) -> bool:
        """Whether this code is known for `config`, where several codes have it."""
        return True

    def remarks(self, config: ModelConfig, shapes: Shapes) -> list[str]:
        """What has to be known of a conversion to `config`."""
        return []


def revised(config: ModelConfig, changes: Mapping[str, Any]) -> ModelConfig:
    """`config` with the values at some addresses changed: `{"stem.kind": "bvit"}`.

    Raises:
        ConfigError: the result breaks a rule.
    """
    if not changes:
        return config
    tree = config.to_tree()
    for address, value in changes.items():
        put_at(tree, address, value)
    return validate(ModelConfig, tree)


def sized(config: ModelConfig, sides: tuple[int, int], img_size: int | None) -> dict[str, Any]:
    """The change that gives `config` images of height and width `sides`.

    Raises:
        ConfigError: `img_size` says otherwise.
    """
    if img_size is not None and sides != (img_size, img_size):
        rule = "these weights are for images of {}x{}".format(*sides)
        raise ConfigError(rule, address="--img-size", value=img_size, nearest=sides[0])
    if sides == config.image_hw:
        return {}
    return {"img_size": sides[0] if sides[0] == sides[1] else list(sides)}


def square(tokens: int, config: ModelConfig) -> tuple[int, int]:
    """Sides in pixels of square images with this number of patches; else those of `config`."""
    side = math.isqrt(max(tokens, 0))
    if math.prod(config.grids[0]) == tokens or side * side != tokens:
        return config.image_hw
    return side * config.stem.stride, side * config.stem.stride


def first_axis(shapes: Shapes, name: str) -> int | None:
    """Length of the first axis of a tensor, or None if it is not there."""
    shape = shapes.get(name)
    return shape[0] if shape else None


def ratio_of(hidden: int, width: int) -> float:
    """The ratio that `int(ratio * width)` makes `hidden` channels of."""
    ratio = hidden / width
    return ratio if int(ratio * width) == hidden else (hidden + 0.5) / width


def renamed(name: str, table: Sequence[tuple[str, str]]) -> str:
    """`name` with the first part that is in `table`, ours before theirs, put into its words."""
    for ours, theirs in table:
        if ours in name:
            return name.replace(ours, theirs, 1)
    return name


def known(**changes: Any) -> dict[str, Any]:
    """The changes whose value is known."""
    return {name: value for name, value in changes.items() if value is not None}
