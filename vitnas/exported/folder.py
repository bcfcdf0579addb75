"""The files of an exported folder. A folder is written as a whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vitnas.errors import DataError, RunError, printable, reason_of, typed
from vitnas.files import check_writable, exists, read_bytes, write_text, writing

CONFIG_FILE, WEIGHTS_FILE = "config.yaml", "model.safetensors"
GRAFT_FILE, BASELINE_FILE = "graft.yaml", "baseline.yaml"
"""Instead of config.yaml: a timm network with grafts; a reference network."""
DESIGN_FILES = (CONFIG_FILE, GRAFT_FILE, BASELINE_FILE)
"""One of these says what the network is."""
RECIPE_FILE, LOG_FILE = "recipe.yaml", "log.jsonl"
"""Further files of a network that a recipe trained."""
CARD_FILE = "README.md"
CLASSES_FILE, _OLD_CLASSES_FILE = "labels.txt", "classes.txt"
"""The names of the classes, one a line, as timm's `--class-map` has them; where they are known."""
_STUDY_FILE = "study.db"
_MOST_BYTES = 1 << 24


def has_network(folder: Path) -> bool:
    """Whether a folder says what its network is."""
    return any(exists(folder / name) for name in DESIGN_FILES)


def why_no_network(folder: Path) -> str:
    """What a folder is that does not say what its network is, and what to give in its place."""
    if not exists(folder):
        return "no such file or directory"
    if exists(folder / _STUDY_FILE):
        run = typed(folder)
        return f"is a run, not a network; vitnas export {run} --knee --to DIR writes one of its"
    inside = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG_FILE}"))
    hint = f"; did you mean {folder / inside[0]}?" if inside else ""
    return f"has no {CONFIG_FILE}; give a folder that vitnas export, train or convert wrote{hint}"


@contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """A context with a draft folder. If it ends without an error, the draft becomes `folder`.

    If `folder` does not exist, the draft is made beside it and renamed. If it exists (it may be the
    current folder, a link or a mount point), the files of the draft move into it.

    Raises:
        RunError: `folder` is a file or not empty, or cannot be written.
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
    """A new folder in `place`. It is deleted at the end unless it was renamed."""
    place.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".vitnas.", suffix=".tmp", dir=place))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _move_files(draft: Path, folder: Path) -> None:
    """Move all files of `draft` into `folder`. After an error none is there."""
    moved: list[Path] = []
    try:
        moved.extend(file.rename(folder / file.name) for file in sorted(draft.iterdir()))
    except OSError:
        for file in moved:
            file.unlink()
        raise


def _umask() -> int:
    """The process's file mode mask. It can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_classes(folder: Path, names: Sequence[str]) -> None:
    """Write the names of the classes, in the order of their numbers; no file for no names."""
    if names:
        write_text(folder / CLASSES_FILE, "".join(f"{printable(name)}\n" for name in names))


def read_classes(folder: Path) -> tuple[str, ...]:
    """The names of the classes; empty where they are not known.

    Raises:
        DataError: the file cannot be read.
    """
    path = folder / CLASSES_FILE
    if not path.exists():
        path = folder / _OLD_CLASSES_FILE  # of a folder that was written before
    if not path.exists():
        return ()
    try:
        return tuple(read_bytes(path, _MOST_BYTES).decode().splitlines())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not a text file in UTF-8") from None


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def check_free(folder: Path) -> None:
    """Raise `RunError` unless `folder` does not exist or is empty, and can be written."""
    try:
        if folder.is_dir():
            if any(folder.iterdir()):
                raise RunError(f"{folder}: is not empty; give a new or an empty folder")
        elif folder.exists() or folder.is_symlink():
            raise RunError(f"{folder}: is a file; give a new or an empty folder")
    except OSError as error:
        raise RunError(f"{folder}: cannot be used: {reason_of(error)}") from None
    check_writable(folder)
