"""The description of another code's weights: its networks, and where each tensor is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from vitnas.config.design import ModelOrGraft
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
        names: its name there; several if that code saves one tensor once for each use.
        behind: tensors that are appended to it along the first axis.
        order: a function that gives it our shape, if more than axes of length one differ.
        beside: further tensors that `order` gets after it.
    """

    names: tuple[str, ...]
    behind: tuple[str, ...] = ()
    order: Callable[..., Tensor] | None = None
    beside: tuple[str, ...] = ()


class Layout(ABC):
    """The names and shapes in the state dicts of one code. No torch.

    Attributes:
        name: its name for `--from`.
        title: the code's name in texts.
        fixed: fields that `fit` sets to what this code computes, by address or last name.
        constants: pattern of the names of tensors that the code saves and never trains, and that
            are not read.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    fixed: ClassVar[tuple[str, ...]] = ()
    constants: ClassVar[str | None] = None

    @abstractmethod
    def models(self) -> tuple[str, ...]:
        """The zoo's models that this code has."""

    @abstractmethod
    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        """`config`, changed to what the checkpoint holds and this code computes.

        Number of classes, channels and image size come from the shapes if they show them. Fields
        that are constants in the code are set. Everything else stays.

        Args:
            config: a model of the zoo or of the user.
            shapes: shapes of the checkpoint; tensors may be missing.
            img_size: side of the images in pixels, if the shapes do not show it.

        Raises:
            ConfigError: the result breaks a rule of model files, or `img_size` is not the
                checkpoint's.
        """

    @abstractmethod
    def source(self, name: str, config: Any, shapes: Shapes) -> Source:
        """Where the tensor `name` of our network `config` is, a design that `infer` gave."""

    def options(self, model: str) -> dict[str, Any]:
        """Options without an effect on shapes that this code sets for the zoo's `model`."""
        return {}

    def zoo(self, model: str) -> ModelConfig:
        """The zoo's model as this code has it."""
        return revised(zoo_config(model), self.options(model))

    def infer(self, shapes: Shapes, img_size: int | None = None) -> Sequence[ModelOrGraft]:
        """The networks of this code that may have these shapes; empty if none has."""
        found = []
        for model in self.models():
            try:
                found.append(self.fit(self.zoo(model), shapes, img_size))
            except ConfigError:
                continue
        return found

    def model_called(self, name: str | None) -> str | None:
        """The zoo's name of this code's network `name`; None if shapes alone decide."""
        return None

    def has(self, config: Any) -> bool:
        """Whether this code is the first choice for `config` if several codes have it."""
        return True

    def remarks(self, config: Any, shapes: Shapes) -> list[str]:
        """Notes for the user about a conversion to `config`."""
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
    """The change that sets the image size of `config` to `sides` (height, width).

    Raises:
        ConfigError: `img_size` is another size.
    """
    if img_size is not None and sides != (img_size, img_size):
        rule = "these weights are for images of {}x{}".format(*sides)
        raise ConfigError(rule, address="--img-size", value=img_size, nearest=sides[0])
    if sides == config.image_hw:
        return {}
    return {"img_size": sides[0] if sides[0] == sides[1] else list(sides)}


def square(tokens: int, config: ModelConfig) -> tuple[int, int]:
    """Sides in pixels of a square image with this number of patches.

    If no square image has this number, or the image of `config` has it, the sides of `config`.
    """
    side = math.isqrt(max(tokens, 0))
    if math.prod(config.grids[0]) == tokens or side * side != tokens:
        return config.image_hw
    return side * config.stem.stride, side * config.stem.stride


def first_axis(shapes: Shapes, name: str) -> int | None:
    """Length of the first axis of a tensor; None without the tensor."""
    shape = shapes.get(name)
    return shape[0] if shape else None


def ratio_of(hidden: int, width: int) -> float:
    """A ratio for which `int(ratio * width) == hidden`."""
    ratio = hidden / width
    return ratio if int(ratio * width) == hidden else (hidden + 0.5) / width


def renamed(name: str, table: Sequence[tuple[str, str]]) -> str:
    """`name` with one part replaced: the first pair (ours, theirs) in `table` that occurs in it."""
    for ours, theirs in table:
        if ours in name:
            return name.replace(ours, theirs, 1)
    return name


def known(**changes: Any) -> dict[str, Any]:
    """The changes whose value is not None."""
    return {name: value for name, value in changes.items() if value is not None}
