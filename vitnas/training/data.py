"""The images of a search in memory: those that train, those that score, and the test images.

Images are kept as bytes and are normalised to floats batch by batch. So a worker needs a quarter of
the memory, and augmentation moves bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from vitnas.config.model import ModelConfig
from vitnas.config.training import DataConfig
from vitnas.data.source import DataSource, ImageHW, Labelled, split_by_class
from vitnas.data.table import read_source
from vitnas.errors import ConfigError, DataError, shorten


@dataclass(frozen=True)
class Split:
    """Images and their classes on one device.

    Attributes:
        x: (n, C, H, W) uint8.
        y: (n,) int64, the class of each.
        mean, std: (C, 1, 1) float32 in units of a byte, 0 to 255; of the training images.
    """

    x: Tensor
    y: Tensor
    mean: Tensor
    std: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def normalise(self, x: Tensor) -> Tensor:
        """(B, C, H, W) uint8 -> float32 with the training images' mean 0 and deviation 1."""
        return x.float().sub_(self.mean).div_(self.std)

    def subset(self, fraction: float, seed: int) -> Split:
        """The same share of each class, 0 < `fraction` <= 1, drawn with `seed`; all of it for 1."""
        if fraction >= 1:
            return self
        _, kept = split_by_class(self.y.cpu(), fraction, seed)
        kept = kept.to(self.y.device)
        return self.of(kept)

    def of(self, index: Tensor) -> Split:
        """The images of these indices, or where a mask is true."""
        return replace(self, x=self.x[index], y=self.y[index])

    def __add__(self, other: Split) -> Split:
        """These images, then those of `other`."""
        return replace(self, x=torch.cat([self.x, other.x]), y=torch.cat([self.y, other.y]))

    def to(self, device: str | torch.device) -> Split:
        """The same images on `device`; no copy if they are there already."""
        return Split(*(part.to(device) for part in (self.x, self.y, self.mean, self.std)))


@dataclass(frozen=True)
class Images:
    """A data set, read and split.

    Attributes:
        name: which one.
        train: what the proxy trains on.
        val: what scores candidates: held out of the training images, never test images.
        classes: names of the classes, in the order of their numbers.
        split_seed: the seed of the split, which also draws subsets of `train`.
        folds: trainings of a network, each on another `fold`.
        fingerprint, skipped: see `vitnas.data.source.DataSource`.
    """

    name: str
    train: Split
    val: Split
    classes: tuple[str, ...]
    split_seed: int = 0
    folds: int = 1
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    _test: Split | None = field(default=None, repr=False)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def image_hw(self) -> ImageHW:
        """(H, W) in pixels."""
        height, width = self.train.x.shape[-2:]
        return height, width

    @property
    def in_chans(self) -> int:
        return self.train.x.shape[1]

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean of each channel over the training images, for pixels from 0 to 1."""
        return tuple((self.train.mean.flatten() / 255).tolist())

    @property
    def std(self) -> tuple[float, ...]:
        """Standard deviation of each channel over the training images, for pixels from 0 to 1."""
        return tuple((self.train.std.flatten() / 255).tolist())

    @property
    def notices(self) -> list[str]:
        """Lines for the user: the files that are skipped."""
        if not self.skipped:
            return []
        return [f"{len(self.skipped)} images are skipped: {'; '.join(self.skipped[:3])}"]

    @property
    def has_test(self) -> bool:
        return self._test is not None

    def test(self) -> Split:
        """The test images, for networks that are already chosen.

        Raises:
            DataError: the data set has no test images.
        """
        if self._test is None:
            raise DataError(f"{self.name} has no test images: no test/ or val/ beside train/")
        return self._test

    def check_fits(self, model_config: ModelConfig) -> None:
        """Refuse a network that is made for other images.

        Raises:
            ConfigError: `num_classes`, `in_chans` or `img_size` differ.
        """
        facts = {
            "num_classes": (model_config.num_classes, self.num_classes),
            "in_chans": (model_config.in_chans, self.in_chans),
            "img_size": (model_config.image_hw, self.image_hw),
        }
        for address, (found, expected) in facts.items():
            if found != expected:
                rule = f"these images of {self.name} have {shorten(expected)}"
                raise ConfigError(rule, address=address, value=found, nearest=shorten(expected))

    def fold(self, number: int) -> Images:
        """The same images, of which others score: another part of `train`, as large as `val`.

        Parts of different numbers have no image in common. The normalisation stays that of `train`.

        Args:
            number: from 0, which is the split as it is.

        Raises:
            DataError: there are too few images for it.
        """
        if number == 0:
            return self
        labels, whole = self.train.y.cpu(), len(self.train) + len(self.val)
        rest = torch.arange(len(labels))
        for done in range(1, number + 1):
            share = min(1.0, len(self.val) / (whole - done * len(self.val)))
            stay, cut = split_by_class(labels[rest], share, self.split_seed)
            scoring, rest = rest[cut], rest[stay]
        training = torch.ones(len(labels), dtype=torch.bool)
        training[scoring] = False
        if not len(scoring) or not training.any():
            raise DataError(f"{self.name}: {whole} training images are too few for so many folds")
        train = self.train.of(training.to(self.train.y.device)) + self.val
        return replace(self, train=train, val=self.train.of(scoring.to(self.train.y.device)))

    def to(self, device: str | torch.device) -> Images:
        """The same data with `train` and `val` on `device`; the test images stay where they are."""
        return replace(self, train=self.train.to(device), val=self.val.to(device))


def check_enough(left: int, of: int, fraction: float, address: str) -> None:
    """Refuse to train on fewer than two images.

    Raises:
        ConfigError: `fraction` leaves `left` of the training images, and that is too few.
    """
    if left < 2:
        rule = f"leaves less than two of {of} training images"
        raise ConfigError(rule, address=address, value=fraction)


def load_data(config: DataConfig, img_size: int | ImageHW) -> Images:
    """Read the images, resize them to `img_size` pixels (a side, or H and W) and split them.

    The split depends on `config` alone. Global random state is neither read nor changed.

    Raises:
        DataError: files are missing, damaged or too few; names the path and how to get the data.
    """
    image_hw = (img_size, img_size) if isinstance(img_size, int) else img_size
    source = read_source(config, image_hw)
    images, labels = source.train
    train, val = split_by_class(labels, config.val_fraction, config.split_seed)

    def part(index: Tensor) -> Labelled:
        return images[index], labels[index]

    return images_of(config, part(train), part(val), source)


def images_of(config: DataConfig, train: Labelled, val: Labelled, source: DataSource) -> Images:
    """Images of `source`, split into `train` and `val`, normalised by those in `train`.

    Raises:
        DataError: too few of them.
    """
    if len(train[1]) < 2 or len(val[1]) < 1:
        where = config.folder or config.name
        raise DataError(
            f"{where}: {len(train[1]) + len(val[1])} training images are too few for val_fraction "
            f"{config.val_fraction:g}: two to train on and one to score with are needed"
        )
    mean, std = _statistics(train[0])

    def split(pair: Labelled) -> Split:
        return Split(*pair, mean, std)

    return Images(
        name=config.name,
        train=split(train),
        val=split(val),
        classes=source.classes,
        split_seed=config.split_seed,
        folds=config.folds,
        fingerprint=source.fingerprint,
        skipped=source.skipped,
        _test=None if source.test is None else split(source.test),
    )


def _statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each channel of (n, C, H, W) bytes, as (C, 1, 1) float32."""
    pixels = images[0, 0].numel() * len(images)
    total = torch.zeros(images.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    for part in torch.split(images, 4096):
        values = part.double()
        total += values.sum(dim=(0, 2, 3))
        squares += values.square().sum(dim=(0, 2, 3))
    mean = total / pixels
    std = (squares / pixels - mean.square()).clamp_min(0).sqrt().clamp_min(1.0)
    return mean.float()[:, None, None], std.float()[:, None, None]
