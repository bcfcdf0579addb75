"""The images of a search: those that train, those that score, and the test images.

Images are kept as bytes and are normalised to floats batch by batch. So a worker needs a quarter of
the memory, and augmentation moves bytes. Where their classes are known before they are read, as
those of an image folder are, only those are read that a run uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.config.design import Design
from vitnas.data.decode import skipped_text
from vitnas.data.elsewhere import Elsewhere, Sender
from vitnas.data.rows import Pixels, channel_sums
from vitnas.data.source import DataSource, ImageHW, Labelled, renumbered, split_by_class
from vitnas.data.table import read_sources
from vitnas.data.telling import SILENT, Teller
from vitnas.errors import ConfigError, DataError, shorten
from vitnas.training.split import Split


@dataclass(frozen=True)
class Images:
    """A data set, read and split.

    Attributes:
        name: which one.
        train: what the proxy trains on.
        val: what scores candidates: held out of the training images, or the data's own; never
            those of `test`.
        classes: names of the classes, in the order of their numbers.
        split_seed: the seed of the split, which also draws subsets of `train`.
        folds: trainings of a network, each on another `fold`.
        fraction: share of `train` of which the images were read: that of `Split.subset`.
        fingerprint, skipped: see `vitnas.data.source.DataSource`.
    """

    name: str
    train: Split
    val: Split
    classes: tuple[str, ...]
    split_seed: int = 0
    folds: int = 1
    fraction: float = 1.0
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    _test: Split | None = field(default=None, repr=False)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def names(self) -> tuple[str, ...]:
        """The classes' names; empty where they are only numbered."""
        are_numbers = all(name == str(number) for number, name in enumerate(self.classes))
        return () if are_numbers else self.classes

    @property
    def image_hw(self) -> ImageHW:
        """(H, W) in pixels."""
        height, width = self.train.pixels.shape[2:]
        return height, width

    @property
    def in_chans(self) -> int:
        return self.train.pixels.shape[1]

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
        return skipped_text(self.skipped)

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

    def check_fits(self, design: Design) -> None:
        """Refuse a network that is made for other images.

        Raises:
            ConfigError: `num_classes`, `in_chans` or `img_size` differ.
        """
        facts = {
            "num_classes": (design.num_classes, self.num_classes),
            "in_chans": (design.in_chans, self.in_chans),
            "img_size": (design.image_hw, self.image_hw),
        }
        for address, (found, expected) in facts.items():
            if found != expected:
                rule = f"these images of {self.name} have {shorten(expected)}"
                if address == "num_classes" and self.names:
                    rule += f": {shorten(self.names)}"
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
            left = max(1, whole - done * len(self.val))  # none, where classes are small
            share = min(1.0, len(self.val) / left)
            stay, cut = split_by_class(labels[rest], share, self.split_seed)
            scoring, rest = self.train.there(rest[cut]), rest[stay]
        training = torch.ones(len(labels), dtype=torch.bool)
        training[scoring] = False
        if not len(scoring) or not training.any():
            rule = f"{whole} training images are too few for so many folds"
            raise DataError(f"{self.name}: {rule} (data.folds = {self.folds})")
        train = self.train.of(training.to(self.train.y.device)) + self.val
        return replace(self, train=train, val=self.train.of(scoring.to(self.train.y.device)))

    def with_classes(self, number: int, fraction: float) -> Images:
        """The images of `number` of the classes, evenly over their order, with new numbers.

        Args:
            number: of classes, at least 1 and at most all.
            fraction: share of `train` that is used, drawn from all classes as by `Split.subset`;
                the result has no other training images.
        """
        chosen = [self.classes[place * self.num_classes // number] for place in range(number)]
        numbers = renumbered(self.classes, chosen)

        def part(split: Split) -> Split:
            ours = numbers.to(split.y.device)
            found = split.of(split.there((ours[split.y] >= 0).nonzero()[:, 0]))
            return replace(found, y=ours[found.y])

        return replace(
            self,
            train=part(self.train.subset(fraction, self.split_seed)),
            val=part(self.val),
            classes=tuple(chosen),
            fraction=1.0,
            _test=None if self._test is None else part(self._test),
        )

    def in_memory(self) -> Images:
        """The same data, no image of it on disk.

        Raises:
            MemoryLimitError: it does not fit.
        """
        test = None if self._test is None else self._test.in_memory()
        return replace(self, train=self.train.in_memory(), val=self.val.in_memory(), _test=test)

    def sent(self, by: Sender) -> Images:
        """The same data for other machines: they fetch what is on disk here when they need it."""
        known: dict[int, Elsewhere] = {}
        train, val = self.train.sent(by, known), self.val.sent(by, known)
        test = None if self._test is None else self._test.sent(by, known)
        return replace(self, train=train, val=val, _test=test)

    def fetch(self) -> None:
        """Bring the images of another machine here that train and score; a test fetches its own."""
        self.train.fetch()
        self.val.fetch()

    def to(self, device: str | torch.device, share: float = 1.0) -> Images:
        """The same data with `train` and `val` on `device`; the test images stay where they are.

        On CUDA they stay on the host, too, where they would take more than `RESIDENT` of the
        device's memory, of a `share` of it, or of what others leave: each batch then comes to the
        device by itself.
        """
        if self.train.pixels.device.type == "cpu" and not _fits(self, torch.device(device), share):
            train, val = self.train.streamed(device), self.val.streamed(device)
            return replace(self, train=train, val=val)
        return replace(self, train=self.train.to(device), val=self.val.to(device))


RESIDENT = 0.4
"""Share of a training's part of a CUDA device's memory that images may take."""


def _fits(images: Images, device: torch.device, share: float) -> bool:
    if device.type != "cuda":
        return True
    free, whole = torch.cuda.mem_get_info(device)  # others may fill it
    return images.train.size + images.val.size <= RESIDENT * min(share * whole, free)


def check_enough(left: int, of: int, fraction: float, address: str) -> None:
    """Refuse to train on fewer than two images.

    Raises:
        ConfigError: `fraction` leaves `left` of the training images, and that is too few.
    """
    if left < 2:
        rule = f"leaves less than two of {of} training images"
        raise ConfigError(rule, address=address, value=fraction)


def load_data(
    config: DataConfig,
    img_size: int | ImageHW,
    fraction: float = 1.0,
    teller: Teller = SILENT,
) -> Images:
    """As `load_sizes`, of one size: a side, or H and W, in pixels."""
    image_hw = (img_size, img_size) if isinstance(img_size, int) else img_size
    return load_sizes(config, [image_hw], fraction, teller)[image_hw]


def load_sizes(
    config: DataConfig,
    sizes: Sequence[ImageHW],
    fraction: float = 1.0,
    teller: Teller = SILENT,
) -> dict[ImageHW, Images]:
    """Read the images, resize them to each of the `sizes` (H, W) in pixels and split them.

    The split depends on `config` alone. Global random state is neither read nor changed.

    Args:
        config: which images.
        sizes: to which they are resized.
        fraction: share of the training images that trainings use at most. Where their classes are
            known before they are read, no others are; mean and deviation are those of the used
            ones.
        teller: told what is decoded before that is done, where it takes long.

    Raises:
        DataError: files are missing, damaged or too few; names the path and how to get the data.
        ConfigError: `fraction` leaves too few; addressed as `train_fraction`.
    """
    sources = read_sources(config, sizes, partial(used_images, config, fraction), teller)
    return {size: _split(config, source, fraction) for size, source in sources.items()}


def _split(config: DataConfig, source: DataSource, fraction: float) -> Images:
    whole = Split(*source.train, *_UNKNOWN)
    train_numbers, val_numbers = split_by_class(whole.y, config.val_fraction, config.split_seed)
    train, held = whole.of(train_numbers), whole.of(whole.there(val_numbers))
    val = source.val or (held.pixels, held.y)
    images = images_of(config, (train.pixels, train.y), val, source, fraction)
    left = images.train.subset(fraction, config.split_seed)
    check_enough(len(left), len(images.train), fraction, "train_fraction")
    return images


def used_images(config: DataConfig, fraction: float, labels: Tensor) -> Tensor:
    """The numbers of the images that train or score in some fold, sorted.

    The split is drawn as from images, with numbers in their place.

    Args:
        config: how they are split.
        fraction: share of the training images that trainings use at most.
        labels: (n,) int64, of all training images.

    Raises:
        ConfigError: `fraction` leaves too few; addressed as `train_fraction`.
    """
    numbers, seed = Split(torch.arange(len(labels)), labels, *_UNKNOWN), config.split_seed
    if fraction >= 1:
        return torch.arange(len(labels))
    train, val = map(numbers.of, split_by_class(labels, config.val_fraction, seed))
    check_enough(len(train.subset(fraction, seed)), len(train), fraction, "train_fraction")
    drawn = Images(config.name, train, val, classes=(), split_seed=seed, folds=config.folds)
    folds = [drawn.fold(number) for number in range(config.folds)]
    used = [part.x for fold in folds for part in (fold.val, fold.train.subset(fraction, seed))]
    found: Tensor = torch.cat(used).unique()
    return found


def images_of(
    config: DataConfig, train: Labelled, val: Labelled, source: DataSource, fraction: float = 1.0
) -> Images:
    """Images of `source`, split into `train` and `val`, normalised by those in `train`.

    Raises:
        DataError: too few of them.
    """
    if len(train[1]) < 2 or len(val[1]) < 1:
        where = config.folder or config.name
        number = len(train[1]) + (len(val[1]) if config.val_split is None else 0)
        raise DataError(
            f"{where}: {number} training images are too few for val_fraction "
            f"{config.val_fraction:g}: two to train on and one to score with are needed"
        )
    fraction = 1.0 if source.is_whole else fraction
    mean, std = _statistics(_measured(config, train, fraction))

    def split(pair: Labelled) -> Split:
        return Split(*pair, mean, std)

    return Images(
        name=config.name,
        train=split(train),
        val=split(val),
        classes=source.classes,
        split_seed=config.split_seed,
        folds=config.folds,
        fraction=fraction,
        fingerprint=source.fingerprint,
        skipped=source.skipped,
        _test=None if source.test is None else split(source.test),
    )


def _measured(config: DataConfig, train: Labelled, fraction: float) -> Pixels:
    """The images whose mean and deviation count: all that train, as far as they were read."""
    return Split(*train, *_UNKNOWN).subset(fraction, config.split_seed).pixels


def _statistics(images: Pixels) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each channel of (n, C, H, W) bytes, as (C, 1, 1) float32."""
    pixels = max(1, len(images)) * images.shape[2] * images.shape[3]
    total, squares = channel_sums(images)
    mean = total / pixels
    std = (squares / pixels - mean.square()).clamp_min(0).sqrt().clamp_min(1.0)
    return mean.float()[:, None, None], std.float()[:, None, None]


_UNKNOWN = torch.zeros(1, 1, 1), torch.ones(1, 1, 1)  # mean and deviation before they are known
