"""Data sets of other packages: torch data sets of training and test images, read into memory.

A package announces a function that gives them under the entry point group `vitnas.datasets`, or a
file names it by its path `package.module:function`; see docs/extend.md. For timm's see `timm_sets`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from typing import Any, NoReturn

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import IterableDataset

from vitnas import plugins
from vitnas.config.data import GROUP, TIMM, DataConfig
from vitnas.cores import cores
from vitnas.data.decode import BrokenImage, as_grey_or_rgb, fitted, refuse_many, without_warnings
from vitnas.data.source import DataSource, ImageHW, check_images_fit
from vitnas.data.timm_sets import Read, open_timm
from vitnas.errors import DataError

_CHUNK = 1024
_AHEAD = 4  # images that are decoded at once, for each core


def read(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """Every image of the data set in memory, as bytes of `image_hw` = (H, W) pixels.

    Raises:
        ConfigError: the function cannot be imported.
        DataError: it fails, or returns something other than two data sets of images and labels.
    """
    train, test = _open(config)
    skipped = list[str]()
    gathered = _read_all(config, train, image_hw, skipped)
    images = gathered.all()
    held = None if test is None else _read_all(config, test, image_hw, skipped).all()
    classes = _classes(config, train, images[1])
    for _, labels in filter(None, (images, held)):
        if int(labels.max()) >= len(classes):
            _refuse(config, f"label {int(labels.max())} where the largest is {len(classes) - 1}")
    same = {"num_images": len(images[1]), "num_classes": len(classes)}
    told = {**same, "digest": gathered.digest}
    return DataSource(images, held, classes, told, tuple(skipped))


def describe(config: DataConfig) -> tuple[int, int]:
    """Number of classes and of channels, for a network that is made for the data."""
    train, _ = _open(config)
    items = (item for item in _items(config, train) if not isinstance(item, BrokenImage))
    first = next(items, None)
    if first is None:
        _refuse(config, "gives a data set without images")
    pixels, label = first
    if getattr(train, "classes", None):
        return len(_classes(config, train, torch.empty(0))), len(pixels)
    return max([label, *(label for _, label in items)]) + 1, len(pixels)


def _open(config: DataConfig) -> tuple[Any, Any]:
    """Both data sets; the second may be None."""
    if config.name == TIMM:
        return open_timm(config)
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


class _Gathered:
    """Images that come one after the other, brought to one size.

    Args:
        config: names the data set in errors.
        image_hw: (H, W) in pixels.
        number: how many will come, as far as that is known.
    """

    def __init__(self, config: DataConfig, image_hw: ImageHW, number: int) -> None:
        self._config, self._image_hw, self._number = config, image_hw, number
        self._parts, self._last, self._labels = list[Tensor](), list[Tensor](), list[int]()
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Sixteen hex digits of all images and labels as they came."""
        return self._digest.hexdigest()[:16]

    def add(self, pixels: Tensor, label: int) -> None:
        if not self._labels:
            self._channels = len(pixels)
            check_images_fit(self._config, self._number, len(pixels), self._image_hw)
        if len(pixels) != self._channels:
            rule = f"has {len(pixels)} channels, and the first one {self._channels}"
            _refuse(self._config, f"item {len(self._labels)} {rule}")
        self._digest.update(pixels.contiguous().numpy().tobytes() + label.to_bytes(8, "little"))
        self._labels.append(label)
        self._last.append(_resized(pixels, self._image_hw))
        if len(self._last) == _CHUNK:
            held = len(self._labels)  # which are copied once, when all have come
            check_images_fit(self._config, held, self._channels, self._image_hw, copies=1)
            self._parts.append(torch.stack(self._last))
            self._last = []

    def all(self) -> tuple[Tensor, Tensor]:
        """(n, C, H, W) uint8 and (n,) int64."""
        last = [torch.stack(self._last)] if self._last else []
        return torch.cat([*self._parts, *last]), torch.tensor(self._labels, dtype=torch.int64)


def _read_all(config: DataConfig, data: Any, image_hw: ImageHW, skipped: list[str]) -> _Gathered:
    """Every image and its class; the broken ones are named in `skipped`."""
    told = len(data) if hasattr(data, "__len__") else 0
    gathered, broken, number = _Gathered(config, image_hw, told), list[BrokenImage](), 0
    with without_warnings():
        for item in _items(config, data):
            number += 1
            if isinstance(item, BrokenImage):
                broken.append(item)
            else:
                gathered.add(*item)
    refuse_many(broken, number)
    if not number:
        _refuse(config, "gives a data set without images")
    skipped += map(str, broken)
    return gathered


def _items(config: DataConfig, data: Any) -> Iterator[tuple[Tensor, int] | BrokenImage]:
    """Every image as (C, h, w) uint8 and its class, in the order of the data set."""
    if isinstance(data, IterableDataset):
        yield from (_checked(config, index, item) for index, item in enumerate(_each(config, data)))
        return

    def read(index: int) -> tuple[Tensor, int] | BrokenImage:
        try:
            item = data[index]
        except BrokenImage as error:
            return error
        except Exception as error:
            _refuse(config, f"item {index} cannot be read", error)
        return _checked(config, index, item)

    if not isinstance(data, Read):  # nobody says that another one can be read by several threads
        yield from map(read, range(len(data)))
        return
    wave = _AHEAD * cores()
    with ThreadPool(cores()) as pool:
        for start in range(0, len(data), wave):
            yield from pool.map(read, range(start, min(start + wave, len(data))), chunksize=1)


def _each(config: DataConfig, data: Any) -> Iterator[Any]:
    """The items of a data set that can only be read from its beginning to its end."""
    try:
        yield from data
    except Exception as error:
        _refuse(config, "cannot be read to its end", error)


def _checked(config: DataConfig, index: int, item: Any) -> tuple[Tensor, int]:
    try:
        image, label = item
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
