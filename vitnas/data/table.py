"""The table of data sets: a name and the function that reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vitnas.config.data import DataConfig
from vitnas.data import cifar, digits, fashion_mnist, foreign, imagefolder
from vitnas.data.source import DataSource, ImageHW, Used, everything
from vitnas.data.telling import SILENT, Teller

READERS: dict[str, Callable[[DataConfig, ImageHW], DataSource]] = {
    "digits": digits.read,
    "fashion_mnist": fashion_mnist.read,
    "cifar10": cifar.read_10,
    "cifar100": cifar.read_100,
}
"""Those of vitnas that are read whole; other names are data sets of other packages."""


def read_source(
    config: DataConfig, image_hw: ImageHW, used: Used = everything, teller: Teller = SILENT
) -> DataSource:
    """As `read_sources`, of one size."""
    return read_sources(config, [image_hw], used, teller)[image_hw]


def read_sources(
    config: DataConfig, sizes: Sequence[ImageHW], used: Used = everything, teller: Teller = SILENT
) -> dict[ImageHW, DataSource]:
    """Read the data set that `config` names, resized to each of the `sizes` (H, W) in pixels.

    Of an image folder, which is listed once, and of timm's data whose classes are known before they
    are read, only the training images that are `used` are read, and all others; `teller` is told
    what is read.

    Raises:
        DataError: a file or folder is missing, unreadable, damaged or empty; names the path, what
            was expected there and how to get it.
        ConfigError: another package's data set cannot be imported.
    """
    if config.name == "imagefolder":
        return imagefolder.read(config, sizes, used, teller)
    if (reader := READERS.get(config.name)) is not None:
        return {size: reader(config, size).chosen(config) for size in sizes}
    return {size: foreign.read(config, size, used, teller).chosen(config) for size in sizes}
