"""Networks of another code that become networks with grafts. No torch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vitnas.config.files import validate
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError
from vitnas.nn.zoo.weights.layout import Shapes, Source


class Host(ABC):
    """The names and shapes of one network of a code; its attention may be a static-key mixer.

    Attributes:
        name: the network in `vitnas.nn.graft.networks` that computes the same.
        mark: a tensor that this network has, and no other one of the code.
    """

    name: ClassVar[str]
    mark: ClassVar[str]

    def has(self, shapes: Shapes) -> bool:
        """Whether these are shapes of this network."""
        return self.mark in shapes

    def infer(self, shapes: Shapes, img_size: int | None = None) -> list[GraftFile]:
        """The one network of these shapes; empty if tensors have another number of axes.

        Args:
            shapes: of the checkpoint; tensors may be missing.
            img_size: side of the images in pixels, if the shapes do not show it.

        Raises:
            ConfigError: a tensor is missing that says what the network is, the code itself cannot
                run a network of these shapes, or `img_size` is not the checkpoint's.
        """
        try:
            options, graft = self.options(shapes, img_size), self.graft(shapes)
        except KeyError as error:
            rule = f"{error.args[0]} is missing, which every {self.name} has"
            raise ConfigError(rule) from None
        except (IndexError, ValueError, ZeroDivisionError):
            return []
        tree = {"model": self.name, "options": options, "grafts": [graft] if graft else []}
        try:
            return [validate(GraftFile, tree)]
        except ConfigError:
            return []

    @abstractmethod
    def options(self, shapes: Shapes, img_size: int | None) -> dict[str, Any]:
        """Options of the host."""

    @abstractmethod
    def graft(self, shapes: Shapes) -> dict[str, Any]:
        """Fields of the graft; empty for the code's own attention."""

    @abstractmethod
    def source(self, name: str, design: GraftFile, shapes: Shapes) -> Source:
        """Where the tensor `name` of our network is."""

    def remarks(self, design: GraftFile, shapes: Shapes) -> list[str]:
        """Notes for the user."""
        return []


def count(shapes: Shapes, prefix: str) -> int:
    """How many numbers follow `prefix`: `count(shapes, "blocks.")` blocks."""
    found = {name[len(prefix) :].split(".")[0] for name in shapes if name.startswith(prefix)}
    return len([number for number in found if number.isdecimal()])


def linear(shapes: Shapes, name: str) -> tuple[int, int]:
    """(channels out, channels in) of a linear layer.

    Raises:
        KeyError, ValueError: there is none.
    """
    outside, inside = shapes[name]
    return outside, inside


def patch_side(numbers: int, images: int = 1) -> tuple[int, int]:
    """Channels of an image and side of a patch, whose `images` images have so many numbers.

    Colour is tried first: 3 numbers are one pixel of a coloured image.

    Raises:
        ValueError: no square patch has so many.
    """
    for channels in (3, 1, 4, 2):
        side = math.isqrt(numbers // (images * channels))
        if side and images * channels * side * side == numbers:
            return channels, side
    raise ValueError(numbers)


def check_size(found: int, img_size: int | None) -> int:
    """The side of the images that the weights are for, in pixels.

    Raises:
        ConfigError: `img_size` is another one.
    """
    if img_size is not None and img_size != found:
        rule = f"these weights are for images of {found}x{found}"
        raise ConfigError(rule, address="--img-size", value=img_size, nearest=found)
    return found


def replaced(name: str, table: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """`name` with the first of these beginnings that it has replaced."""
    pairs = table.items() if isinstance(table, Mapping) else table
    for ours, theirs in pairs:
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    return name
