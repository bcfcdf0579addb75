"""Where the first weights of a training come from, as it is asked for; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vitnas.config.files import exists, is_file
from vitnas.errors import DataError
from vitnas.exported.folder import WEIGHTS_FILE, sha256_of

TIMM = "timm:"
"""What stands before the name of a network of timm."""


@dataclass(frozen=True)
class FromTimm:
    """Weights that timm loads.

    Attributes:
        name: timm's, with or without the tag of its weights.
        weights: a file with them; None = timm downloads them.
    """

    name: str
    weights: str | None = None

    @property
    def text(self) -> str:
        """As it was asked for: `timm:NAME` or `timm:NAME:FILE`."""
        return TIMM + (self.name if self.weights is None else f"{self.name}:{self.weights}")


def start_of(text: str) -> Path | FromTimm:
    """An exported folder, or weights that timm loads.

    Raises:
        DataError: the folder is none, or there is no such file, or the text is empty.
    """
    if text.startswith(TIMM):
        name, _, file = text.removeprefix(TIMM).partition(":")
        if file and not is_file(file):
            raise DataError(f"{file}: no such file")
        return FromTimm(name, file or None)
    if not text:  # as a path, it is the current folder
        raise DataError("--init-from: is empty: a folder or timm:NAME is wanted")
    folder = Path(text)
    if not exists(folder / WEIGHTS_FILE):
        raise DataError(f"{folder}: is no exported folder: it has no {WEIGHTS_FILE}")
    return folder


def digest(start: Path | FromTimm) -> str:
    """What tells first weights apart; timm's own have the name of their tag."""
    if isinstance(start, Path):
        return sha256_of(start / WEIGHTS_FILE)[:12]
    if start.weights is None:
        return start.name
    return f"{start.name} {sha256_of(Path(start.weights))[:12]}"
