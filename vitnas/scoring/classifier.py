"""A trained network of any form: images in, scores of classes out, and how images are prepared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vitnas.config.model import load_config
from vitnas.data.source import ImageHW
from vitnas.errors import ConfigError, DataError, VitnasError, shorten
from vitnas.exported.folder import CLASSES_FILE, CONFIG_FILE, read_classes
from vitnas.exported.held_out import HeldOut, read_held_out
from vitnas.exported.hub import read_preprocessing
from vitnas.exported.preprocessing import Preprocessing


@dataclass(frozen=True)
class Classifier:
    """A network that can be asked.

    Attributes:
        name: as the user gave it.
        runtime: what runs it: `PyTorch`, `torch.export` or `onnxruntime`.
        ask: normalised images (B, C, H, W) float32 on `device` -> scores (B, classes) float32.
        in_chans, image_hw, num_classes: of its images in pixels, and of its answers.
        device: where it runs.
        preprocessing: how an image becomes its input; None: it does not say.
        names: of its classes; empty where they are not known.
        held_out: how its training split its images; None: it does not say.
    """

    name: str
    runtime: str
    ask: Callable[[Tensor], Tensor]
    in_chans: int
    image_hw: ImageHW
    num_classes: int
    device: torch.device
    preprocessing: Preprocessing | None = None
    names: tuple[str, ...] = ()
    held_out: HeldOut | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its classes; their numbers where they have none."""
        return self.names or tuple(str(number) for number in range(self.num_classes))

    def scores(self, images: Tensor) -> Tensor:
        """Scores (B, classes) of normalised images, on `device`.

        Raises:
            VitnasError: a score is not a finite number.
        """
        with torch.inference_mode():
            found = self.ask(images.to(self.device)).float()
        if not bool(found.isfinite().all()):
            raise VitnasError(f"{self.name}: gives scores that are not finite numbers")
        return found


def count_classes(name: str, ask: Callable[[Tensor], Tensor], images: Tensor) -> int:
    """How many scores a network gives each of two images.

    Raises:
        ConfigError: it cannot be run, or gives something else.
    """
    try:
        with torch.inference_mode():
            found = ask(images)
    except Exception as error:  # a foreign network's own
        why = str(error).strip().splitlines() or [type(error).__name__]
        rule = f"cannot take images of {_sizes(images.shape[1:])}: {why[0]}"
        raise ConfigError(rule[:300], address=name) from None
    shape = tuple(getattr(found, "shape", ()))
    if len(shape) != 2 or shape[0] != len(images) or not shape[1]:
        rule = f"answers {len(images)} images with {shorten(shape)} and not scores of classes"
        raise ConfigError(rule, address=name)
    return int(shape[1])


def facts_beside(
    folder: Path, name: str, shape: tuple[int, ...], classes: int
) -> tuple[Preprocessing | None, tuple[str, ...], HeldOut | None]:
    """How images are prepared, what classes are called and which images its training held out, by
    the folder of a network.

    Args:
        folder: with config.json and labels.txt, or without.
        name: of the network, for errors.
        shape: (C, H, W) of its images.
        classes: of its answers.

    Raises:
        ConfigError: config.yaml beside it is another network's.
        DataError: labels.txt has another number of names.
    """
    if (folder / CONFIG_FILE).is_file():
        config = load_config(folder / CONFIG_FILE)
        stated = (config.in_chans, *config.image_hw), config.num_classes
        if stated != (shape, classes):
            rule = f"{_network(*stated)} in {folder / CONFIG_FILE}, and {_network(shape, classes)}"
            raise ConfigError(f"{rule} in {name}: they are not the same network")
    names = read_classes(folder)
    if names and len(names) != classes:
        raise DataError(f"{folder / CLASSES_FILE}: {len(names)} names for {classes} classes")
    return read_preprocessing(folder, shape[0]), names, read_held_out(folder)


def _network(shape: tuple[int, ...], classes: int) -> str:
    return f"{_sizes(shape)} images and {classes} classes"


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
