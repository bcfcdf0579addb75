"""The items of another package's data set: images and classes, as bytes, in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from multiprocessing.pool import ThreadPool
from typing import Any, NoReturn

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import IterableDataset

from vitnas.config.data import DataConfig
from vitnas.cores import cores
from vitnas.data.decode import BrokenImage, as_grey_or_rgb, fitted
from vitnas.data.source import ImageHW
from vitnas.data.timm_images import Read
from vitnas.errors import DataError
from vitnas.words import plural

_AHEAD = 4  # images that are decoded at once, for each core
Item = tuple[Tensor, int]
"""An image (C, h, w) uint8 and its class."""


def is_in_turn(data: Any) -> bool:
    """Whether a data set can only be read from its beginning to its end."""
    return isinstance(data, IterableDataset)


def items(
    config: DataConfig, data: Any, numbers: Sequence[int] | None = None
) -> Iterator[Item | BrokenImage]:
    """The items of these numbers, or all, in the order of the data set.

    Raises:
        DataError: one is no image with a class.
    """
    if is_in_turn(data):
        for index, item in enumerate(_each(config, data)):
            yield item if isinstance(item, BrokenImage) else _checked(config, index, item)
        return
    numbers = range(len(data)) if numbers is None else numbers
    if not isinstance(data, Read):  # nobody says that another one can be read by several threads
        yield from (item_of(config, data, index) for index in numbers)
        return
    wave = _AHEAD * cores()
    with ThreadPool(cores()) as pool:
        for start in range(0, len(numbers), wave):
            part = numbers[start : start + wave]
            yield from pool.map(lambda index: item_of(config, data, index), part, chunksize=1)


def item_of(config: DataConfig, data: Any, index: int) -> Item | BrokenImage:
    """One item of a data set that has numbers.

    Raises:
        DataError: it is no image with a class.
    """
    try:
        item = data[index]
    except BrokenImage as error:
        return error
    except Exception as error:
        refuse(config, f"item {index} cannot be read", error)
    return _checked(config, index, item)


def resized(pixels: Tensor, image_hw: ImageHW) -> Tensor:
    """(C, h, w) uint8 -> (C, H, W) uint8, bilinear with antialiasing."""
    if tuple(pixels.shape[-2:]) == image_hw:
        return pixels
    whole = pixels[None].float()
    return interpolate(whole, image_hw, mode="bilinear", antialias=True).round_()[0].to(torch.uint8)


def hw_of(item: Item) -> ImageHW:
    """(h, w) of an image as it came, in pixels."""
    height, width = item[0].shape[-2:]
    return height, width


def digest_of(item: Item) -> bytes:
    """Sixteen bytes of an image as it came and its class."""
    pixels, label = item
    content = pixels.contiguous().numpy().tobytes() + label.to_bytes(8, "little")
    return hashlib.sha256(content).digest()[:16]


def total_digest(digests: bytes) -> str:
    """Sixteen hex digits of the digests of all images, one after the other."""
    return hashlib.sha256(digests).hexdigest()[:16]


def refuse_channels(config: DataConfig, index: int, item: Item, channels: int) -> None:
    """Refuse an image that has other channels than the first one."""
    if len(item[0]) != channels:
        rule = f"has {plural(len(item[0]), 'channel')}, and the first one {channels}"
        refuse(config, f"item {index} {rule}")


def refuse(config: DataConfig, problem: str, error: Exception | None = None) -> NoReturn:
    """Say in one line what is wrong with the data set."""
    why = "" if error is None else f": {type(error).__name__}: {error}"
    raise DataError(f"data set {config.name}: {problem}{why}"[:500]) from error


def _each(config: DataConfig, data: Any) -> Iterator[Any]:
    """The items of a data set that can only be read from its beginning to its end."""
    try:
        yield from data
    except Exception as error:
        refuse(config, "cannot be read to its end", error)


def _checked(config: DataConfig, index: int, item: Any) -> Item:
    try:
        image, label = item
        pixels, number = _pixels(image), int(label)
    except Exception as error:
        refuse(config, f"item {index} cannot be read", error)
    if number < 0:
        refuse(config, f"item {index} has the label {number}, and labels count from 0")
    return pixels, number


def _pixels(image: Any) -> Tensor:
    if isinstance(image, Image.Image):
        flat = as_grey_or_rgb(image)
        return torch.from_numpy(fitted(flat, (flat.height, flat.width)))
    if isinstance(image, Tensor):
        return _bytes(image)
    kind = type(image).__name__
    raise TypeError(f"an image is a tensor or a PIL image, and this one is a {kind}")


def _bytes(image: Tensor) -> Tensor:
    """(C, H, W) or (H, W), floats from 0 to 1 or bytes -> (C, H, W) bytes."""
    if image.ndim == 2:
        image = image[None]
    if image.ndim != 3 or not image.numel():
        raise ValueError(f"an image has the shape (C, H, W), and this one {tuple(image.shape)}")
    if image.is_floating_point():
        if not (image.min() >= 0 and image.max() <= 1):
            raise ValueError("pixels that are floats are from 0 to 1, not normalised")
        return (image * 255).round().to(torch.uint8)
    if image.dtype != torch.uint8:
        raise TypeError(f"pixels are uint8 or floats, and these {image.dtype}")
    return image
