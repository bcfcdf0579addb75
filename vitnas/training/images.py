"""The images that a network is trained on, scored on and, once it is chosen, tested on.

Images are kept as bytes and are normalised to floats batch by batch. So a worker needs a quarter of
the memory, and augmentation moves bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from vitnas.config.design import Design
from vitnas.config.differences import changed_images
from vitnas.data.decode import skipped_text
from vitnas.data.elsewhere import Elsewhere, Sender
from vitnas.data.source import ImageHW, renumbered, split_by_class
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

    def check_same(self, before: Mapping[str, Any] | None) -> None:
        """Refuse images that are not those of a run.

        Args:
            before: the run's fingerprint; None: it tells none.

        Raises:
            DataError: they have changed.
        """
        changes = [] if before is None else changed_images(before, self.fingerprint)
        if changes:
            rule = "the images that train, score or test have changed since the run began"
            raise DataError(f"{self.name}: {rule}: {'; '.join(changes)}")

    def normalised_by(self, stated: Mapping[str, Any]) -> Images:
        """The same images with another normalisation.

        Args:
            stated: `mean` and `std` of each channel, for pixels from 0 to 1; where they are missing
                or of another number of channels, the normalisation stays.
        """
        mean, std = (torch.tensor(stated.get(key) or ()) for key in ("mean", "std"))
        if not len(mean) == len(std) == self.in_chans:
            return self
        both = {"mean": 255 * mean[:, None, None], "std": 255 * std[:, None, None]}
        train, val = (replace(part, **both) for part in (self.train, self.val))
        test = None if self._test is None else replace(self._test, **both)
        return replace(self, train=train, val=val, _test=test)

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
