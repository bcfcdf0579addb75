"""Reads the images of a search and splits them.

Where their classes are known before they are read, as those of an image folder are, only those are
read that a run uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.data.rows import Pixels, channel_sums
from vitnas.data.source import DataSource, ImageHW, Labelled, split_by_class
from vitnas.data.table import read_sources
from vitnas.data.telling import SILENT, Teller
from vitnas.errors import ConfigError, DataError
from vitnas.training.images import Images
from vitnas.training.split import Split


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
