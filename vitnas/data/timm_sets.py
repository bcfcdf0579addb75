"""Data sets that `timm.data.create_dataset` opens: tar files, torch/, wds/, hfds/, hfids/, tfds/.

timm's words are kept: its name of the data set, its names of splits, its keys of images and labels.
No image is downloaded for `torch/` and `tfds/`, and no code of a data set is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitnas.config.data import DataConfig
from vitnas.config.data_checks import missing_package
from vitnas.data.decode import refuse_many
from vitnas.data.place import classes_of
from vitnas.data.timm_images import Read, in_order, numbers_of
from vitnas.data.timm_streams import UNDECODED, Stream
from vitnas.environment import only_errors_of
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
        raise DataError(f"{name_of(config)}: needs the package {package}, which is not installed")
    if _is_folder(config):
        _found(config, _splits(config)[0])


def open_timm(config: DataConfig) -> tuple[Any, Any]:
    """Training and test images, or None for these; in the form that `foreign` reads.

    Of a folder or tar file, only images of the classes that are used.

    Raises:
        DataError: timm cannot open them, or a package is not installed; of a folder or tar file,
            a class is not there, or only in the test images.
    """
    check_place(config)
    train_split, *test_split = _splits(config)
    train, test = _opened(config, train_split), None
    if test_split and (config.splits is not None or _place(config, test_split[0]) is not None):
        test = _opened(config, test_split[0])
    if isinstance(train, Read) and train.is_listed:
        _choose(config, train, test)
    return train, test


def _choose(config: DataConfig, train: Read, test: Read | None) -> None:
    """Only the classes that are used, with the same numbers in both splits, before any is read."""
    if test is not None and (strange := sorted(set(test.numbers) - set(train.numbers))):
        place = _place(config, _splits(config)[1])
        what = f"class '{strange[0]}' of {place} is not among those that train"
        raise DataError(f"{name_of(config)}: {what}")
    classes = classes_of(config, train.classes, config.name)
    for data in filter(None, (train, test)):
        data.choose(classes)
    if test is not None and not len(test):
        what = f"split {_splits(config)[1]}: has no image of these classes"
        raise DataError(f"{name_of(config)}: {what}")


def key_of(config: DataConfig, data: Any, number: int) -> str | None:
    """What tells one state of a split from another without reading it: the names, sizes and times
    of the files, or what `hfds/` and `hfids/` know of their data. None where nothing does.

    Args:
        config: which data.
        data: the split as `open_timm` has opened it.
        number: 0 for the training images, 1 for the test images.
    """
    from timm import __version__

    split = _splits(config)[number]
    state = _state(config, data, split)
    numbers = list(getattr(data, "numbers", {}).items())
    columns = [config.input_key, config.target_key]
    told = [__version__, config.dataset, split, columns, numbers, state]
    return None if state is None else json.dumps(told)


def left_out(config: DataConfig, data: Any, number: int) -> tuple[str, ...]:
    """A line for each image that a split announces and that its reader left out: it does not say
    which, nor why. None where the reader may leave out images on purpose.

    Args:
        config: which data.
        data: the split as `open_timm` has opened it.
        number: of images that came, broken ones too.

    Raises:
        DataError: more than 1 % of them.
    """
    reader = getattr(data, "reader", None)
    told = len(data) if hasattr(data, "__len__") else 0
    is_choosing = config.target_key or getattr(getattr(reader, "split_info", None), "alt_label", "")
    lines = max(0, told - number) * (f"{name_of(config)}: an image that its reader leaves out",)
    if is_choosing:
        return ()
    refuse_many(lines, told)
    return lines


def name_of(config: DataConfig) -> str:
    """The data in messages."""
    return f"timm data set {config.dataset or config.folder}"


def origin_of(config: DataConfig) -> str:
    """Where the data are from, by the whole path: it is kept, and shown elsewhere, too."""
    place = None if config.folder is None else os.path.realpath(config.folder)
    return " in ".join(filter(None, (config.dataset, place)))


def _state(config: DataConfig, data: Any, split: str) -> Any:
    """What `key_of` tells of a split; None where nothing tells."""
    kind = _kind(config)
    reader: Any = getattr(data, "reader", None)
    if kind == "hfds":
        return data.fingerprint
    if kind == "hfids":
        return getattr(reader.builder, "cache_dir", None)  # ends in a hash of the data's files
    if kind == "tfds":
        return _files(Path(str(reader.builder.data_dir)))
    if kind == "wds":
        names = [Path(reader.root, name) for name in reader.split_info.filenames]
        return [_files(name) for name in names] if all(map(Path.is_file, names)) else None
    place = None if config.folder is None else _place(config, split)
    return None if place is None else _files(place)


def _opened(config: DataConfig, split: str) -> Any:
    """One split."""
    from timm.data import ImageDataset, create_dataset

    keys: dict[str, Any] = {"input_key": config.input_key, "target_key": config.target_key}
    place: Path | None = config.folder
    if _is_folder(config):
        place = _found(config, split)
        keys["search_split"] = False
    root = None if place is None else str(place)
    try:
        name = "" if _is_folder(config) else config.dataset or ""
        with only_errors_of("timm"):  # not that there is no class map
            found = create_dataset(name, root=root, split=split, **keys)
    except (Exception, SystemExit) as error:
        if _kind(config) == "tfds" and _says_not_prepared(error):
            raise _not_prepared(config) from error
        why = f"{type(error).__name__}: {error}"
        raise DataError(
            f"{name_of(config)}: split {split}: cannot be opened: {why}"[:500]
        ) from error
    if _kind(config) == "tfds" and not found.reader.builder.is_prepared():
        raise _not_prepared(config)
    if isinstance(found, ImageDataset):
        return Read(found.reader)
    if (reader := getattr(found, "reader", None)) is not None:
        found.classes = in_order(numbers_of(reader))
    undecoded = UNDECODED.get(_kind(config))
    return found if undecoded is None else Stream(found, name_of(config), undecoded)


def _says_not_prepared(error: BaseException) -> bool:
    """Whether tensorflow_datasets says it, in many words: it lists all names that it knows."""
    return type(error).__name__ == "DatasetNotFoundError" or "`splits` is empty" in str(error)


def _not_prepared(config: DataConfig) -> DataError:
    """Also where their server tells how many images there are, or the version is another one."""
    place = config.folder or "its own folder"
    return DataError(f"{name_of(config)}: tensorflow_datasets has not prepared it in {place}")


def _kind(config: DataConfig) -> str:
    """What stands before the first `/`, in small letters."""
    return (config.dataset or "").partition("/")[0].lower()


def _is_folder(config: DataConfig) -> bool:
    """Whether timm reads a folder of classes or a tar file, and does not look at the split."""
    name = (config.dataset or "").lower()
    return "/" not in name or name in ("torch/folder", "torch/image_folder")


def _splits(config: DataConfig) -> tuple[str, ...]:
    return config.splits or ("train", "validation")


def _found(config: DataConfig, split: str) -> Path:
    place = _place(config, split)
    if place is None:
        raise DataError(f"{name_of(config)}: there is no {split}/ or {split}.tar")
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


def _files(place: Path) -> list[tuple[str, int, int]] | None:
    """Path, size and time of a file, or of all below a folder; links are followed, as timm does.
    None where the system does not say."""
    whole = place.resolve()
    folders = _walk(whole) if whole.is_dir() else [(whole.parent, [whole.name])]
    try:
        paths = sorted(Path(folder, name) for folder, names in folders for name in names)
        return [(str(path), (at := path.stat()).st_size, at.st_mtime_ns) for path in paths]
    except OSError:
        return None


def _walk(whole: Path) -> Iterator[tuple[str | Path, list[str]]]:
    """Every folder below a folder and its files, each folder once."""
    seen = {whole}
    for folder, folders, names in os.walk(whole, followlinks=True):
        real = {name: Path(folder, name).resolve() for name in folders}
        folders[:] = [name for name in folders if real[name] not in seen]
        seen |= set(real.values())
        yield folder, names
