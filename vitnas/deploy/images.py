"""The images of a check: those that score, and training images that score nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.data.decode import BrokenImage
from vitnas.data.imagefolder import split_folder
from vitnas.data.listing import list_folder
from vitnas.data.place import root_of
from vitnas.data.source import resized
from vitnas.errors import DataError
from vitnas.exported.preprocessing import Preprocessing
from vitnas.exported.quantized import CALIBRATION
from vitnas.files import is_folder
from vitnas.scoring.answers import Answers, answers_of, answers_to
from vitnas.scoring.classifier import Classifier
from vitnas.scoring.data import Labelled, LabelledFiles, Part
from vitnas.scoring.evaluate import Suited, files_of, suit
from vitnas.scoring.images import decoded, normalised

TRAINING = 512
"""Training images on which answers are compared, beside the `CALIBRATION` ones; of fewer images, a
third calibrate and the rest compare."""

Ask = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Pictures:
    """Images as a network takes them.

    Attributes:
        suited: those that score, and how they are prepared.
        shape: (C, H, W).
        calibration, training: normalised training images (n, C, H, W) float32; no image is in both,
            and none scores.
    """

    suited: Suited
    shape: tuple[int, int, int]
    calibration: Tensor
    training: Tensor

    def answers(self, asks: Sequence[Ask]) -> list[Answers]:
        """The answers of each function to the images that score; they are read once."""
        found: list[list[Answers]] = [[] for _ in asks]
        how, places = self.suited.how, torch.tensor(self.suited.places)
        for pixels, labels in self.suited.labelled.batches(how, self.shape[0], self.shape[1:]):
            images = normalised(pixels, how)
            with torch.inference_mode():
                for ask, kept in zip(asks, found, strict=True):
                    kept.append(answers_to(ask(images).float(), places[labels]))
        return [answers_of(kept) for kept in found]


def pictures_for(classifier: Classifier, data: DataConfig, part: Part) -> Pictures:
    """Read the images of a check.

    Randomness: training images are drawn with seed 0.

    Raises:
        VitnasError: network and images do not fit together, images cannot be read, or there are no
            training images to calibrate on.
    """
    suited = suit(classifier, data, part, files_of(data, part))
    shape = (classifier.in_chans, *classifier.image_hw)
    training = normalised(_training(suited.labelled, data, suited.how, shape), suited.how)
    number = min(CALIBRATION, max(1, len(training) // 3))
    return Pictures(suited, shape, training[:number], training[number:])


def _training(
    labelled: Labelled, data: DataConfig, how: Preprocessing, shape: tuple[int, int, int]
) -> Tensor:
    """Pixels (n, C, H, W) uint8 of random training images that score nothing."""
    if isinstance(labelled, LabelledFiles):
        found = list(_decoded(data, how, shape))
        if len(found) < 2:
            raise DataError(f"{data.folder}: has no training images to calibrate int8 on")
        return torch.stack(found)
    train = labelled.images.train
    kept = train.there(_draw(len(train)))
    if len(kept) < 2:
        raise DataError(f"{data.name}: has no training images to calibrate int8 on")
    return resized(data, train.pixels[kept], shape[1:])


def _decoded(data: DataConfig, how: Preprocessing, shape: tuple[int, int, int]) -> Iterator[Tensor]:
    """Images of `train/`, without those that are held out of it; broken ones are passed over."""
    if not is_folder(root_of(data) / "train"):
        rule = "has no train/, so there are no training images to calibrate int8 on"
        raise DataError(f"{data.folder}: {rule}")
    folder = list_folder(data)
    kept = torch.arange(len(folder.train))
    if folder.val is None:
        folder, kept, _ = split_folder(data, folder)
    chosen = [Path(folder.train[int(kept[at])].path) for at in _draw(len(kept))]
    for _, pixels in decoded(chosen, how, shape[0], shape[1:]):
        if not isinstance(pixels, BrokenImage):
            yield pixels


def _draw(available: int) -> Tensor:
    order = torch.randperm(available, generator=torch.Generator().manual_seed(0))
    return order[: CALIBRATION + TRAINING]
