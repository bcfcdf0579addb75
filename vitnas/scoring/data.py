"""The labelled images that score a network: of a data set, or of a folder's split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from vitnas.config.data import DataConfig, class_names
from vitnas.data.decode import BrokenImage, refuse_many
from vitnas.data.imagefolder import split_folder
from vitnas.data.imageset import ImageFile
from vitnas.data.listing import images_below, list_folder
from vitnas.data.place import classes_of, root_of
from vitnas.data.source import ImageHW, resized
from vitnas.errors import ConfigError, DataError
from vitnas.exported.preprocessing import Preprocessing, trained_on, unknown
from vitnas.files import is_folder
from vitnas.scoring.classifier import Classifier
from vitnas.scoring.images import BATCH, Decoded, dealt, decoded
from vitnas.training.data import load_data
from vitnas.training.images import Images
from vitnas.training.split import Split
from vitnas.words import plural

Part = Literal["test", "val"]
Batch = tuple[Tensor, Tensor]
"""Pixels (B, C, H, W) uint8 in a network's size, and the images' classes (B,) int64."""


@dataclass
class LabelledFiles:
    """Image files of known classes.

    Attributes:
        files: one an image.
        classes: names of the classes, in the order of their numbers.
        words: which images they are.
        skipped: files that could not be read, once all were asked for.
        source: where values that the network does not say are from.
        is_held_out: whether they are a share of the training images.
    """

    files: list[ImageFile]
    classes: tuple[str, ...]
    words: str
    skipped: list[BrokenImage] = field(default_factory=list)
    source: str = "taken are ImageNet's values"
    is_held_out: bool = False

    def default(self, channels: int) -> Preprocessing:
        """For a network that does not say how images are prepared."""
        return unknown(channels)

    def batches(self, how: Preprocessing, channels: int, image_hw: ImageHW) -> Iterator[Batch]:
        """All images that can be read, in their order.

        Raises:
            DataError: more than 1 % of them cannot be read.
        """
        self.skipped.clear()
        paths = [Path(file.path) for file in self.files]
        pairs = zip(self.files, decoded(paths, how, channels, image_hw), strict=True)
        for batch in dealt(self._sound(pairs)):
            pixels, labels = zip(*batch, strict=True)
            yield torch.stack(pixels), torch.tensor(labels)
        refuse_many(self.skipped, len(self.files))

    def _sound(self, pairs: Iterable[tuple[ImageFile, Decoded]]) -> Iterator[tuple[Tensor, int]]:
        for file, (_, found) in pairs:
            if isinstance(found, BrokenImage):
                self.skipped.append(found)
            else:
                yield found, file.number


@dataclass
class LabelledImages:
    """Images of a data set in memory; attributes as of `LabelledFiles`."""

    config: DataConfig
    images: Images
    split: Split
    classes: tuple[str, ...]
    words: str
    skipped: list[BrokenImage] = field(default_factory=list)
    source: str = "taken are the values of these training images"
    is_held_out: bool = False

    def default(self, channels: int) -> Preprocessing:
        """With the mean and deviation of the data's own training images."""
        return trained_on(self.images.name, self.images.mean, self.images.std)

    def batches(self, how: Preprocessing, channels: int, image_hw: ImageHW) -> Iterator[Batch]:
        """All images, in their order; scaled as for a training, whatever `how` says."""
        for pixels, labels in self.split.batches(BATCH):
            yield resized(self.config, pixels, image_hw), labels


Labelled = LabelledFiles | LabelledImages


def of_folder(config: DataConfig, part: Part) -> LabelledFiles:
    """The images of a folder that score a network; no pixel is read yet.

    `test`: those of `test/`, or of `val/` where there is no `test/`. `val`: those of `val/`, or
    where there is none the share of `train/` that a training holds out. A folder with none of the
    three holds the classes itself.

    Raises:
        DataError: there are no such images, or a class is not in `train/`.
    """
    root = root_of(config)
    there = [name for name in ("test", "val", "train") if is_folder(root / name)]
    if not there:
        return _held(config, root, root, f"images of {root}")
    if part == "val" and "val" not in there and "train" in there:
        return _held_out(config)
    wanted = [name for name in ("val", *["test"] * (part == "test")) if name in there]
    if not wanted:
        other = "; --score-on val scores images that are held out of train/"
        neither = "test/ nor val/" if part == "test" else "val/ nor train/"
        raise DataError(f"{root}: has neither {neither}{other * (part == 'test')}")
    place = root / wanted[-1]
    train = root / "train"
    return _held(config, place, train if is_folder(train) else place, f"images of {place}")


def of_data_set(config: DataConfig, part: Part, classifier: Classifier) -> LabelledImages:
    """The images of a data set that score a network.

    They are read as they were published, and in the network's size where their mean and deviation
    are needed, because it does not say how images are prepared.

    Raises:
        ConfigError: they have other channels than the network's.
        DataError: they are not there, or there are no test images.
    """
    _check_channels(classifier, config, config.facts.in_chans)
    side = None if classifier.preprocessing is None else config.facts.img_size
    images = load_data(config, classifier.image_hw if side is None else (side, side))
    _check_channels(classifier, config, images.in_chans)
    is_held_out = part == "val" and config.val_split is None
    if is_held_out:
        split, what = images.val, "held out of the training images of"
    elif config.val_split == "test":
        split, what = images.val, "test images of"
    elif images.has_test:
        split, what = images.test(), "test images of"
    else:
        raise DataError(f"{config.name}: has no test images; --score-on val scores held-out ones")
    words = f"{what} {config.name}"
    return LabelledImages(config, images, split, images.classes, words, is_held_out=is_held_out)


def _check_channels(classifier: Classifier, config: DataConfig, channels: int | None) -> None:
    if channels is not None and channels != classifier.in_chans:
        count = plural(channels, "channel")
        rule = f"takes images of {classifier.in_chans}, and those of {config.name} have {count}"
        raise ConfigError(rule, address=classifier.name)


def _held(config: DataConfig, place: Path, named_by: Path, words: str) -> LabelledFiles:
    """The images of `place`, whose classes are those of the folder `named_by`."""
    there = class_names(named_by)
    if not there:
        raise DataError(f"{named_by}: has no class folders: <class>/<image>")
    classes = classes_of(config, there, str(named_by))
    present = class_names(place)
    if strange := sorted(set(present) - set(there)):
        raise DataError(f"{place}: class '{strange[0]}' is not in {named_by}")
    files = [
        file
        for number, name in enumerate(classes)
        if name in present
        for file in images_below(place / name, number)
    ]
    if not files:
        raise DataError(f"{place}: has no image of these classes")
    return LabelledFiles(files, classes, words)


def _held_out(config: DataConfig) -> LabelledFiles:
    """The share of `train/` that scores candidates and no training sees."""
    folder, _, held = split_folder(config, list_folder(config))
    files = [folder.train[number] for number in held.tolist()]
    if not files:
        raise DataError(f"{folder.root}: too few images to hold some out of train/")
    words = f"held out of {folder.root / 'train'}"
    return LabelledFiles(files, folder.classes, words, is_held_out=True)
