"""Data sets that `timm.data.create_dataset` opens: tar files, torch/, wds/, hfds/, hfids/, tfds/.

timm's words are kept: its name of the data set, its names of splits, its keys of images and labels.
Nothing is downloaded for `torch/`, and no code of a data set is run.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

from PIL import Image

from vitnas.config.data import DataConfig
from vitnas.config.data_checks import missing_package
from vitnas.data.decode import read_rgb, read_whole
from vitnas.data.telling import only_errors_of
from vitnas.errors import DataError

_SAME = (
    ("train", "training"),
    ("val", "valid", "validation", "eval", "evaluation"),
)
"""Names of splits that timm takes for the same."""


def check_place(config: DataConfig) -> None:
    """Refuse data without a folder or tar file of training images, or without their package.

    Raises:
        DataError: as `open_timm`.
    """
    if package := missing_package(config):
        raise DataError(f"{_name(config)}: needs the package {package}, which is not installed")
    if _is_folder(config):
        _found(config, _splits(config)[0])


def open_timm(config: DataConfig) -> tuple[Any, Any]:
    """Training and test images, or None for these; in the form that `foreign` reads.

    Raises:
        DataError: timm cannot open them, or a package is not installed.
    """
    check_place(config)
    train_split, *test_split = _splits(config)
    train = _opened(config, train_split, None)
    if not test_split or (config.splits is None and _place(config, test_split[0]) is None):
        return train, None
    return train, _opened(config, test_split[0], getattr(train, "numbers", None))


class Read:
    """A data set of timm's with a number for each image, read by ourselves: timm replaces an image
    that it cannot read by the next one.

    Several threads may read at once: one takes bytes from an archive while the others decode.

    Attributes:
        numbers: of the classes, by name; empty where the data set has no names.
        classes: the names in the order of their numbers.
    """

    def __init__(self, reader: Any) -> None:
        self._reader, self._alone = reader, Lock()
        weakref.finalize(self, _close, getattr(reader, "tar_state", None))
        found = getattr(reader, "class_to_idx", None) or getattr(reader, "class_name_to_idx", {})
        self.numbers: Mapping[str, int] = found
        self.classes = tuple(sorted(found, key=lambda name: found[name]))

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        with self._alone:
            file, label = self._reader[index]
            path = Path(str(self._reader.filename(index)))
            with file:
                content = read_whole(path, file)
        return read_rgb(path, BytesIO(content)), label


def _opened(config: DataConfig, split: str, numbers: Mapping[str, int] | None) -> Any:
    """One split; `numbers` are those of the training images' classes."""
    from timm.data import ImageDataset, create_dataset

    keys: dict[str, Any] = {"input_key": config.input_key, "target_key": config.target_key}
    place: Path | None = config.folder
    if _is_folder(config):
        place = _found(config, split)
        keys |= {"search_split": False, "class_map": dict(numbers) if numbers else None}
    root = None if place is None else str(place)
    try:
        name = "" if _is_folder(config) else config.dataset or ""
        with only_errors_of("timm"):  # not that there is no class map
            found = create_dataset(name, root=root, split=split, **keys)
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise DataError(f"{_name(config)}: split {split}: cannot be opened: {why}"[:500]) from error
    return Read(found.reader) if isinstance(found, ImageDataset) else found


def _close(tar: Any) -> None:
    """Close the archive that timm's reader keeps open."""
    if tar is not None and tar.tf is not None:
        tar.tf.close()


def _is_folder(config: DataConfig) -> bool:
    """Whether timm reads a folder of classes or a tar file, and does not look at the split."""
    name = (config.dataset or "").lower()
    return "/" not in name or name in ("torch/folder", "torch/image_folder")


def _splits(config: DataConfig) -> tuple[str, ...]:
    return config.splits or ("train", "validation")


def _found(config: DataConfig, split: str) -> Path:
    place = _place(config, split)
    if place is None:
        raise DataError(f"{_name(config)}: there is no {split}/ or {split}.tar")
    return place


def _place(config: DataConfig, split: str) -> Path | None:
    """Where a split is: a folder or tar file of its name in `root`; for the training images also
    `root` itself. timm would take `root` for test images, too. None where there is none."""
    root = config.folder
    assert root is not None
    if not _is_folder(config):
        return root
    names = next((same for same in _SAME if split in same), ())
    for name in (split, *names):
        for place in (root / name, root / f"{name}.tar"):
            if place.exists():
                return place
    return root if split in _SAME[0] and root.exists() else None


def _name(config: DataConfig) -> str:
    return f"timm data set {config.dataset or config.folder}"
