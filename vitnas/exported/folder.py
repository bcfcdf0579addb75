"""The files of an exported folder, and how a folder is written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vitnas.errors import RunError, reason_of
from vitnas.files import writing

CONFIG_FILE, WEIGHTS_FILE = "config.yaml", "model.safetensors"
GRAFT_FILE = "graft.yaml"
"""In the place of a config.yaml: a network of timm's with grafts."""
RECIPE_FILE, LOG_FILE = "recipe.yaml", "log.jsonl"
"""Of a network that a recipe trained."""
CARD_FILE = "README.md"


@contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """A new folder whose content becomes that of `folder` when the block ends without an error.

    It is made beside a `folder` that is not there yet, and takes that name at once. A folder that
    is there stays what it is (the current folder, a link, a mount point): the files move into it.

    Raises:
        RunError: `folder` is a file or not empty, or its place cannot be written to.
    """
    check_free(folder)
    is_there = folder.is_dir()
    with writing(folder), _draft(folder if is_there else folder.parent) as draft:
        yield draft
        draft.chmod(0o777 & ~_umask())  # mkdtemp makes it for its owner only
        if is_there:
            _move_files(draft, folder)
        else:
            draft.rename(folder)


@contextmanager
def _draft(place: Path) -> Iterator[Path]:
    """A new folder in `place`, gone afterwards unless it has another name then."""
    place.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".vitnas.", suffix=".tmp", dir=place))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _move_files(draft: Path, folder: Path) -> None:
    """Move what is in `draft` into `folder`; all of it or nothing."""
    moved: list[Path] = []
    try:
        moved.extend(file.rename(folder / file.name) for file in sorted(draft.iterdir()))
    except OSError:
        for file in moved:
            file.unlink()
        raise


def _umask() -> int:
    """The process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_free(folder: Path) -> None:
    """Raise `RunError` unless `folder` does not exist or is empty."""
    try:
        if folder.is_dir():
            if any(folder.iterdir()):
                raise RunError(f"{folder}: is not empty; give a new or an empty folder")
        elif folder.exists() or folder.is_symlink():
            raise RunError(f"{folder}: is a file; give a new or an empty folder")
    except OSError as error:
        raise RunError(f"{folder}: cannot be used: {reason_of(error)}") from None
