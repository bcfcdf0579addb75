"""What the data must have for a space or a network, without reading an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vitnas.config.data import PACKAGES, DataConfig, class_names
from vitnas.config.design import Design
from vitnas.config.files import is_folder
from vitnas.errors import ConfigError, nearest_name
from vitnas.plugins import is_path, why_missing
from vitnas.words import plural


def check_data_there(data: DataConfig) -> None:
    """Refuse an image folder without `train/`, of one class, a split or classes that it does not
    have, without reading an image, and data that need a package which is not installed.

    Says nothing of a folder that is not there, or of other data.

    Raises:
        ConfigError: addressed inside `data`.
    """
    if package := missing_package(data):
        rule = f"needs the package {package}, which is not installed"
        raise ConfigError(rule, address="dataset", value=data.dataset)
    if is_path(data.name) and (reason := why_missing(data.name)):
        raise ConfigError(reason, address="name", value=data.name)
    if data.name != "imagefolder" or data.folder is None:
        return
    if is_folder(data.folder) and not is_folder(data.folder / "train"):
        above = data.folder.resolve().parent
        rule = "has no folder train; images lie in train/<class>/<image>"
        nearest = str(above) if is_folder(above / "train") else None
        raise ConfigError(rule, address="root", value=data.root, nearest=nearest)
    names = class_names(data.folder / "train")
    if len(names) == 1:
        rule = f"{data.folder / 'train'} has 1 class folder, and two are needed"
        raise ConfigError(rule, address="root", value=data.root)
    if names:
        chosen_classes(data, names, str(data.folder / "train"))
        _check_split(data, data.folder)


def missing_package(data: DataConfig) -> str | None:
    """The package that timm needs for these data, where it is not installed."""
    from importlib.util import find_spec  # slow, and `vitnas --help` does without

    package = PACKAGES.get((data.dataset or "").partition("/")[0].lower())
    return package if package is not None and find_spec(package) is None else None


def chosen_classes(data: DataConfig, names: Sequence[str], where: str) -> tuple[str, ...]:
    """Those of the classes `names` that `data` asks for, in their order.

    Raises:
        ConfigError: one is not there, or there are fewer; addressed as `classes`.
    """
    if data.classes is None:
        return tuple(names)
    if isinstance(data.classes, int):
        if data.classes > len(names):
            rule = f"{where} has {plural(len(names), 'class')}"
            raise ConfigError(rule, address="classes", value=data.classes, nearest=len(names))
        return tuple(names[: data.classes])
    for name in data.classes:
        if name not in names:
            nearest = nearest_name(name, names)
            rule = f"{where} has no such class"
            raise ConfigError(rule, address="classes", value=name, nearest=nearest)
    return tuple(name for name in names if name in data.classes)


def _check_split(data: DataConfig, root: Path) -> None:
    split = data.val_split
    if split is None or class_names(root / split):
        return
    other = "val" if split == "test" else "test"
    nearest = other if class_names(root / other) else "null, with a val_fraction"
    rule = f"there are no class folders in {root / split}"
    raise ConfigError(rule, address="val_split", value=split, nearest=nearest)


def check_data_fits(data: DataConfig, design: Design) -> None:
    """Refuse a network whose classes or channels are not those of the data.

    Any `img_size` fits, because images are resized. Takes no torch and reads no image; of an
    `imagefolder` it lists the class folders, and says nothing when they are not there.

    Raises:
        ConfigError: addressed inside the model (`num_classes`, `in_chans`); use
            `.at(prefix="model")` for a file that holds the model under a key.
    """
    known = {"num_classes": data.count_classes(), "in_chans": data.facts.in_chans}
    for field, expected in known.items():
        found = getattr(design, field)
        if expected is not None and found != expected:
            what = "class" if field == "num_classes" else "channel"
            rule = f"{data.name} has {plural(expected, what)}"
            raise ConfigError(rule, address=field, value=found, nearest=expected)
