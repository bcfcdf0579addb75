"""A data set as its files hold it, and what all readers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from vitnas.config.data import DataConfig
from vitnas.config.differences import DIGEST, LISTED, SCORING, TESTED
from vitnas.data.place import classes_of, damaged, fingerprint_of, root_of
from vitnas.data.rows import Pixels, taken
from vitnas.errors import DataError
from vitnas.memory import check_memory

ImageHW = tuple[int, int]
Labelled = tuple[Pixels, Tensor]
"""Images (n, C, H, W) uint8 and their classes (n,) int64."""
Used = Callable[[Tensor], Tensor]
"""From the classes (n,) of all training images to the numbers of those that a run uses, sorted."""

_CHUNK = 1024


@dataclass(frozen=True)
class DataSource:
    """A data set as its files hold it.

    Attributes:
        train: all training images, also those that will be held out to score candidates.
        test: the test images, or None where there are none.
        classes: the classes' names, in the order of their numbers.
        fingerprint: plain values that are different for different training images; where the
            data's own images score or test and may change, also for others of these (`SCORING`,
            `TESTED`).
        skipped: files that cannot be read and are left out, each with the reason.
        val: the data's own images that score candidates; None where they are held out of `train`.
        is_whole: whether all training images were read, not only those that a run uses.
    """

    train: Labelled
    test: Labelled | None
    classes: tuple[str, ...]
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    val: Labelled | None = None
    is_whole: bool = True

    def chosen(self, config: DataConfig) -> DataSource:
        """Only the classes that `config` names, and its split, of images that are all in memory.

        Raises:
            DataError: there is no such class, or no test image to score with.
        """
        classes = classes_of(config, self.classes, config.name)
        source = self if classes == self.classes else self._of(classes)
        if config.val_split is None:
            return source
        if source.test is None:
            raise DataError(f"{config.name} has no test images, and val_split: test needs them")
        return replace(source, val=source.test, test=None)

    def _of(self, classes: tuple[str, ...]) -> DataSource:
        numbers = renumbered(self.classes, classes)

        def of(pair: Labelled) -> Labelled:
            labels = numbers[pair[1]]
            return taken(pair[0], labels >= 0), labels[labels >= 0]

        train = of(self.train)
        same = _fingerprint_of_some(self.fingerprint, classes, len(train[1]))
        test = None if self.test is None else of(self.test)
        return replace(self, train=train, test=test, classes=classes, fingerprint=same)


def split_by_class(labels: Tensor, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Split off the same share of each class.

    Args:
        labels: (n,) int64 on the CPU.
        fraction: share that is split off, 0 to 1, rounded in each class to whole images.
        seed: of the draw; global random state is neither read nor changed.

    Returns:
        Indices that stay and indices that are split off, both sorted.
    """
    generator = torch.Generator().manual_seed(seed)
    stay, cut = [torch.empty(0, dtype=torch.int64)], [torch.empty(0, dtype=torch.int64)]
    grouped, order = torch.sort(labels, stable=True)
    _, sizes = torch.unique_consecutive(grouped, return_counts=True)
    for group in order.split(sizes.tolist()) if len(order) else ():
        members = group[torch.randperm(len(group), generator=generator)]
        number = round(len(members) * fraction)
        cut.append(members[:number])
        stay.append(members[number:])
    return torch.cat(stay).sort().values, torch.cat(cut).sort().values


def renumbered(before: Sequence[str], classes: Sequence[str]) -> Tensor:
    """(k,) int64: for each of the classes `before` its number among `classes`; -1 = not there."""
    numbers = torch.full((len(before),), -1)
    numbers[[before.index(name) for name in classes]] = torch.arange(len(classes))
    return numbers


def everything(labels: Tensor) -> Tensor:
    """The numbers of all images; see `Used`."""
    return torch.arange(len(labels))


def _fingerprint_of_some(
    whole: Mapping[str, Any], classes: Sequence[str], number: int
) -> dict[str, Any]:
    """The fingerprint of the `number` images of some `classes`, from that of all."""
    pixels = {name: value for name, value in whole.items() if name not in (LISTED, TESTED)}
    same = fingerprint_of(classes, [str(pixels).encode()], number)
    tested = {TESTED: whole[TESTED]} if TESTED in whole else {}
    if LISTED not in whole:
        return same | tested
    listed = {name: whole[name] for name in (LISTED, SCORING) if name in whole}
    told = fingerprint_of(classes, [str(listed).encode()], number)["digest"]
    return (same if DIGEST in whole else {"num_classes": len(classes)}) | {LISTED: told} | tested


def fingerprint_of_pixels(classes: Sequence[str], pair: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """As `fingerprint_of`, for images in memory before they are resized."""
    parts = [tensor.contiguous().numpy().tobytes() for tensor in pair]
    return fingerprint_of(classes, parts, len(pair[1]))


def resized(config: DataConfig, images: Tensor, image_hw: ImageHW) -> Tensor:
    """(n, C, h, w) uint8 -> (n, C, H, W) uint8, bilinear with antialiasing, in slices."""
    if tuple(images.shape[-2:]) == image_hw or not len(images):
        return images
    check_images_fit(config, len(images), images.shape[1], image_hw)
    result = torch.empty(*images.shape[:2], *image_hw, dtype=torch.uint8)
    for part, place in zip(*(torch.split(x, _CHUNK) for x in (images, result)), strict=True):
        place.copy_(
            interpolate(
                part.float(), image_hw, mode="bilinear", antialias=True, align_corners=False
            ).round_()
        )
    return result


def check_images_fit(
    config: DataConfig, number: int, channels: int, image_hw: ImageHW, copies: int = 2
) -> None:
    """Refuse more images than fit into the free memory; some kinds are held twice for a while.

    Raises:
        MemoryLimitError: they do not fit.
    """
    needed = copies * number * channels * image_hw[0] * image_hw[1]
    images = f"{config.folder or config.name}: {number:,} images"
    check_memory(needed, images, "take a smaller img_size or fewer images")


def source_of(
    config: DataConfig,
    image_hw: ImageHW,
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    classes: tuple[str, ...],
) -> DataSource:
    """The data set of two pairs as its files hold them: checked, then resized.

    Raises:
        DataError: an image has no label, or that of an unknown class.
    """
    for pair in (train, test):
        _check(config, pair)
    same = fingerprint_of_pixels(classes, train)
    fitted = [(resized(config, images, image_hw), labels) for images, labels in (train, test)]
    return DataSource(fitted[0], fitted[1], classes, same)


def _check(config: DataConfig, pair: tuple[Tensor, Tensor]) -> None:
    images, labels = pair
    where = root_of(config)
    if 0 in images.shape[2:]:
        damaged(config, where, "images of {} x {} pixels".format(*images.shape[2:]))
    if len(images) != len(labels) or not len(images):
        damaged(config, where, f"{len(images)} images and {len(labels)} labels")
    largest, classes = int(labels.max()), config.facts.num_classes or 0
    if largest >= classes:
        damaged(config, where, f"label {largest} where the largest is {classes - 1}")
