"""What is known of a data set from its folders and classes, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from vitnas.config.data import DataConfig
from vitnas.config.data_checks import chosen_classes
from vitnas.errors import ConfigError, DataError
from vitnas.files import is_folder


def root_of(config: DataConfig) -> Path:
    """The folder that holds the files; it is there."""
    root = config.folder
    assert root is not None  # `DataConfig` asks for one where there is none by default
    if not is_folder(root):
        where = "" if root.is_absolute() else f" in {Path.cwd()}"
        damaged(config, root, f"no such folder{where}")
    return root


def damaged(config: DataConfig, path: Path, problem: str) -> NoReturn:
    raise DataError(f"{path}: {problem}; {config.name}: {config.facts.source}")


def classes_of(config: DataConfig, names: Sequence[str], where: str) -> tuple[str, ...]:
    """Those of the classes `names`, found in `where`, that `config` asks for.

    Raises:
        DataError: there is no such class.
    """
    try:
        return chosen_classes(config, names, where)
    except ConfigError as error:
        raise DataError(str(error.at(prefix="data"))) from None


def fingerprint_of(classes: Sequence[str], parts: Sequence[bytes], number: int) -> dict[str, Any]:
    """The fingerprint of `number` training images with these classes and this content."""
    digest = hashlib.sha256("\0".join(classes).encode("utf-8", "surrogateescape"))
    for part in parts:
        digest.update(part)
    return {"num_images": number, "num_classes": len(classes), "digest": digest.hexdigest()[:16]}
