"""The answers of a batch in a file, one line each, so that nothing is trained twice."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from vitnas.config.data import DataConfig
from vitnas.config.differences import by_pixels
from vitnas.engine.batch.request import Answer, Request
from vitnas.errors import RunError
from vitnas.files import exists, read_bytes, write_text
from vitnas.sessions import Data

_MOST_BYTES = 1 << 28


class Entry(BaseModel):
    """A line of the file.

    Attributes:
        key: of the request.
        images: of what the images are, as the owner of the file says it.
        request: what was trained and how, for readers.
        answer: what it gave.
        ended: when, in seconds since 1970; None if an older version wrote it.
        taken: whether another run trained it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    images: str = ""
    request: dict[str, Any] = {}
    answer: Answer
    ended: float | None = None
    taken: bool = False


class Book:
    """Answers by request, kept in a file of JSON lines; one process writes at a time.

    Args:
        path: the file; it need not exist.
        images: names the images; answers on others stay in the file and are not found.

    Raises:
        RunError: a line is not an answer; or, once it is asked for, not one of its request.
    """

    def __init__(self, path: Path, images: str = "") -> None:
        self._path, self._images = path, images
        self._entries = read_entries(path)
        self._texts = [_line(entry) for entry in self._entries]
        self._lines = {
            entry.key: number
            for number, entry in enumerate(self._entries, start=1)
            if entry.images == images
        }

    def get(self, request: Request) -> Answer | None:
        """The answer that is kept, if any."""
        number = self._lines.get(request.key)
        if number is None:
            return None
        answer = self._entries[number - 1].answer
        if not request.can_give(answer):
            raise _no_result(self._path, number)
        return answer

    def put(self, request: Request, answer: Answer, taken: bool = False) -> None:
        """Keep an answer, which another run gave if it is `taken`; it is in the file when this
        returns."""
        told: dict[str, Any] = {"request": request.told(), "images": self._images, "taken": taken}
        now = round(time.time(), 3)
        self._entries.append(Entry(key=request.key, answer=answer, ended=now, **told))
        self._texts.append(_line(self._entries[-1]))
        self._lines[request.key] = len(self._entries)
        write_text(self._path, "".join(self._texts))

    def missing(self, requests: Iterable[Request]) -> list[Request]:
        """The requests without an answer, each once."""
        unique = {request.key: request for request in requests}
        return [request for request in unique.values() if self.get(request) is None]


def read_entries(path: Path) -> list[Entry]:
    """The lines of a file of answers, in their order; none where there is no file.

    Raises:
        RunError: a line is not an answer.
    """
    lines = read_bytes(path, _MOST_BYTES).splitlines() if exists(path) else []
    return [_entry(path, number, line) for number, line in enumerate(lines, start=1)]


def _entry(path: Path, number: int, line: bytes) -> Entry:
    try:
        return Entry.model_validate_json(line)
    except ValidationError:
        raise _no_result(path, number) from None


def _no_result(path: Path, number: int) -> RunError:
    rule = f"{path}: line {number} is not the result of a training"
    return RunError(f"{rule}; remove the line, and its training is done again")


def _line(entry: Entry) -> str:
    return entry.model_dump_json(exclude_defaults=True) + "\n"


def images_name(data: DataConfig, found: Data) -> str:
    """Twelve hex digits of the images and of their split, wherever they lie.

    Args:
        data: which images, and which of them score.
        found: what is known once they are read.
    """
    asked = data.model_dump(mode="json", exclude={"root"})
    told = found.told().get("fingerprint")
    same = None if told is None else by_pixels(told)
    text = json.dumps([asked, same], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
