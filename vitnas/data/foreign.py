"""Data sets of other packages: a function that gives torch data sets of training and test images.

A package announces the function under the entry point group `vitnas.datasets`, or a file names it
by its path `package.module:function`; see docs/extend.md.
"""

from __future__ import annotations

import hashlib
from typing import Any, NoReturn

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

from vitnas import plugins
from vitnas.config.data import GROUP, DataConfig
from vitnas.data.decode import as_grey_or_rgb, fitted, without_warnings
from vitnas.data.source import DataSource, ImageHW, check_images_fit
from vitnas.errors import DataError


def read(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """Every image of the data set in memory, as bytes of `image_hw` = (H, W) pixels.

    Raises:
        ConfigError: the function cannot be imported.
        DataError: it fails, or returns something other than two data sets of images and labels.
    """
    train, test = _open(config)
    digest = hashlib.sha256()
    images = _read_all(config, train, image_hw, digest)
    held = None if test is None else _read_all(config, test, image_hw, hashlib.sha256())
    classes = _classes(config, train, images[1])
    for _, labels in filter(None, (images, held)):
        if int(labels.max()) >= len(classes):
            _refuse(config, f"label {int(labels.max())} where the largest is {len(classes) - 1}")
    same = {"num_images": len(train), "num_classes": len(classes)}
    return DataSource(images, held, classes, {**same, "digest": digest.hexdigest()[:16]})


def describe(config: DataConfig) -> tuple[int, int]:
    """Number of classes and of channels, for a network that is made for the data."""
    train, _ = _open(config)
    channels = len(_item(config, train, 0)[0])
    if getattr(train, "classes", None):
        return len(_classes(config, train, torch.empty(0))), channels
    labels = [_item(config, train, index)[1] for index in range(len(train))]
    return max(labels) + 1, channels


def _open(config: DataConfig) -> tuple[Any, Any]:
    """Both data sets; the second may be None."""
    make = plugins.load(plugins.path_of(config.name, GROUP, what="data set"), address="data.name")
    try:
        given = make() if config.folder is None else make(config.folder)
        train, test = given
        sizes = [len(part) for part in (train, test) if part is not None]
    except Exception as error:
        _refuse(config, "must give (train, test), data sets with a length", error)
    if not all(sizes):
        _refuse(config, "gives a data set without images")
    return train, test


def _read_all(
    config: DataConfig, data: Any, image_hw: ImageHW, digest: Any
) -> tuple[Tensor, Tensor]:
    first, _ = _item(config, data, 0)
    check_images_fit(config, len(data), len(first), image_hw)
    images = torch.empty(len(data), len(first), *image_hw, dtype=torch.uint8)
    labels = torch.empty(len(data), dtype=torch.int64)
    with without_warnings():
        for index in range(len(data)):
            pixels, label = _item(config, data, index)
            if len(pixels) != len(first):
                rule = f"has {len(pixels)} channels, and the first one {len(first)}"
                _refuse(config, f"item {index} {rule}")
            digest.update(pixels.contiguous().numpy().tobytes() + label.to_bytes(8, "little"))
            images[index], labels[index] = _resized(pixels, image_hw), label
    return images, labels


def _item(config: DataConfig, data: Any, index: int) -> tuple[Tensor, int]:
    """An image as (C, h, w) uint8 and its class."""
    try:
        image, label = data[index]
        pixels, number = _pixels(image), int(label)
    except Exception as error:
        _refuse(config, f"item {index} cannot be read", error)
    if number < 0:
        _refuse(config, f"item {index} has the label {number}, and labels count from 0")
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


def _resized(pixels: Tensor, image_hw: ImageHW) -> Tensor:
    if tuple(pixels.shape[-2:]) == image_hw:
        return pixels
    whole = pixels[None].float()
    return interpolate(whole, image_hw, mode="bilinear", antialias=True).round_()[0].to(torch.uint8)


def _classes(config: DataConfig, train: Any, labels: Tensor) -> tuple[str, ...]:
    """The names in `classes`, as torchvision's data sets have them, or numbers."""
    given = getattr(train, "classes", None)
    if given:
        return tuple(map(str, given))
    return tuple(map(str, range(int(labels.max()) + 1)))


def _refuse(config: DataConfig, problem: str, error: Exception | None = None) -> NoReturn:
    why = "" if error is None else f": {type(error).__name__}: {error}"
    raise DataError(f"data set {config.name}: {problem}{why}"[:500]) from error
