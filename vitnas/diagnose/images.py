"""A few images of a data set, in the size of a network. None is from the test split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from vitnas.config.data import DataConfig, class_names
from vitnas.config.data_names import data_names, named_data
from vitnas.config.files import is_folder
from vitnas.config.space import shipped_spaces
from vitnas.data.imagefolder import read_files, split_folder
from vitnas.data.imageset import ImageFile
from vitnas.data.listing import Folder, images_below, list_folder
from vitnas.data.source import ImageHW
from vitnas.data.telling import scoring_text
from vitnas.diagnose.subject import Subject
from vitnas.errors import ConfigError, DataError, nearest_name, printable
from vitnas.training.data import load_data
from vitnas.training.split import Split
from vitnas.words import plural

_WHOLE_SIDE = 64
"""For networks of up to this image side, all images are resized, as in training. For larger ones
only the drawn images are resized, and where the network does not say mean and deviation, they are
those of the published images."""


@dataclass(frozen=True)
class Shown:
    """The images that were drawn.

    Attributes:
        images: the images, with the mean and deviation that normalise them.
        facts: their source and number, and why others of those drawn are skipped, for JSON. `part`
            says of how many and of which images they were drawn, in the words of a training.
        classes: of how many classes of the network they are; None = of none.
    """

    images: Split
    facts: dict[str, Any]
    classes: int | None = None


def data_named(text: str) -> DataConfig | Path:
    """The data that `--data` names.

    `text` is `digits`, `cifar10`, `cifar10:/data/cifar`, another package's data set by name or
    path, a folder, a space file or a shipped space.

    Raises:
        ConfigError: it is none of these (the error names the nearest), or the space file is wrong.
    """
    if (found := named_data(text)) is not None:
        return found
    if is_folder(text):
        return Path(text)
    names = [name for name in data_names() if name != "imagefolder"]
    nearest = nearest_name(text, [*names, *shipped_spaces()])
    rule = f"must be of {', '.join(names)}, a folder of images or a space file"
    raise ConfigError(rule, address="--data", value=text, nearest=nearest)


def show(data: DataConfig | Path, subject: Subject, number: int, seed: int = 0) -> Shown:
    """Draw `number` images, resized for `subject`.

    From a named data set or a space, they are images that score candidates; no training uses them.
    From a folder with `train/`, they are images of its held-out share; from another folder, of all
    images below it.

    Raises:
        ConfigError: the network needs images with another number of channels.
        DataError: there are no images, or they cannot be read.
    """
    if isinstance(data, Path):
        if class_names(data / "train"):
            data = DataConfig(name="imagefolder", root=str(data))
        else:
            _check_channels(subject, 3, str(data))
            files = _files_below(data)
            part = f"the {len(files):,} below {data}"
            return _from_files(data, files, subject, number, seed, part)
    _check_channels(subject, data.facts.in_chans, data.name)
    if data.name == "imagefolder":
        assert data.folder is not None
        listed = list_folder(data)
        files, part = _scoring(data, listed)
        shown = _from_files(data.folder, files, subject, number, seed, part)
        return _of_classes(shown, subject, listed.classes)
    return _from_memory(data, subject, number, seed)


def _scoring(data: DataConfig, listed: Folder) -> tuple[list[ImageFile], str]:
    """The files that score candidates, or all that train where these are too few; and which."""
    if listed.val is not None:
        return listed.val, scoring_text(len(listed.val), data.val_split)
    sound, _, held = split_folder(data, listed)
    if files := [sound.train[index] for index in held.tolist()]:
        return files, scoring_text(len(files), None)
    return sound.train, f"the {len(sound.train):,} of train, which are too few to hold some out"


def _check_channels(subject: Subject, channels: int | None, name: str) -> None:
    if channels is not None and subject.in_chans != channels:
        count = plural(channels, "channel")
        rule = f"{name} has images with {count}; {subject.name} needs another number"
        raise ConfigError(rule, address="in_chans", value=subject.in_chans, nearest=channels)


def _from_memory(data: DataConfig, subject: Subject, number: int, seed: int) -> Shown:
    published = data.facts.img_size or _WHOLE_SIDE
    small = max(subject.image_hw) <= _WHOLE_SIDE
    size = subject.image_hw if small else (published, published)
    images = load_data(data, size)
    _check_channels(subject, images.in_chans, data.name)
    val = images.val
    kept = _draw(len(val), number, seed)
    mean, std = _of_network(subject) or (val.mean, val.std)
    drawn = Split(_resized(val.x[kept], subject.image_hw), val.y[kept], mean, std)
    part = scoring_text(len(val), data.val_split)
    facts = _facts(data.name, part, drawn, len(val), images.skipped)
    shown = Shown(drawn, facts)
    if not images.names:
        return replace(shown, classes=images.num_classes)
    return _of_classes(shown, subject, images.names)


def _of_classes(shown: Shown, subject: Subject, names: Sequence[str]) -> Shown:
    """The images with their classes, as the network numbers them where it has names for them."""
    told = [printable(name) for name in names]
    ours = list(getattr(subject.network, "label_names", ())) or told
    if ours == told or len(ours) != len({*told}):
        return replace(shown, classes=len(told))
    if {*ours} != {*told}:
        return shown  # of others
    places = torch.tensor([ours.index(name) for name in told])
    images = replace(shown.images, y=places[shown.images.y])
    return replace(shown, images=images, classes=len(told))


def _from_files(
    folder: Path,
    files: list[ImageFile],
    subject: Subject,
    number: int,
    seed: int,
    part: str,
) -> Shown:
    """Reads only the drawn images. Where the network does not say mean and deviation, they are
    those of these images.

    A broken one is skipped; more than 1 % of them are an error.
    """
    drawn = [files[index] for index in _draw(len(files), number, seed).tolist()]
    x, y, skipped = read_files(drawn, subject.image_hw)
    images = Split(x, y, *(_of_network(subject) or _of_images(x)))
    return Shown(images, _facts(str(folder), part, images, len(files), skipped))


def _of_network(subject: Subject) -> tuple[Tensor, Tensor] | None:
    """Mean and deviation (C, 1, 1) that the network says for its channels, in units of a byte."""
    said = subject.mean or (), subject.std or ()
    if any(len(values) != subject.in_chans for values in said):
        return None
    mean, std = (255 * torch.tensor(values)[:, None, None] for values in said)
    return mean, std


def _of_images(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation (C, 1, 1) of images (n, C, H, W)."""
    pixels = x.double().transpose(0, 1).flatten(1)
    mean, std = pixels.mean(1).float(), pixels.std(1).float().clamp_min(1.0)
    return mean[:, None, None], std[:, None, None]


def _files_below(folder: Path) -> list[ImageFile]:
    found = images_below(folder)
    if not found:
        raise DataError(f"{folder}: has no image")
    return found


def _draw(available: int, number: int, seed: int) -> Tensor:
    """Sorted positions of `number` random images; all positions if there are fewer."""
    order = torch.randperm(available, generator=torch.Generator().manual_seed(seed))
    return order[:number].sort().values


def _resized(images: Tensor, image_hw: ImageHW) -> Tensor:
    """(n, C, h, w) bytes -> (n, C, H, W) bytes, bilinear with antialiasing, as in training."""
    if tuple(images.shape[-2:]) == image_hw:
        return images
    larger = interpolate(
        images.float(), image_hw, mode="bilinear", antialias=True, align_corners=False
    )
    return larger.round_().clamp_(0, 255).to(torch.uint8)


def _facts(
    name: str, part: str, images: Split, available: int, skipped: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "data": name,
        "part": part,
        "images": len(images),
        "available": available,
        "skipped": list(skipped),
        "image_hw": list(images.x.shape[-2:]),
        "mean": [round(float(v) / 255, 5) for v in images.mean.flatten()],
        "std": [round(float(v) / 255, 5) for v in images.std.flatten()],
    }
