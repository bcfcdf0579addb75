"""What can go wrong because of what a user wrote, and how it is said: one line, exit code 2.

Every error carries the file, the address inside it, the value found, the rule it breaks and,
where one exists, the nearest value that would be accepted. Anything that is not a `VitnasError`
is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

_LONGEST_VALUE = 60


class VitnasError(Exception):
    """A mistake that the user can mend. `str()` is always one line."""

    exit_code = 2

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(VitnasError):
    """A model or space file says something that cannot be.

    Attributes:
        rule: what has to hold.
        address: where in the file, e.g. `model.stages[2].groups`; empty for the whole file.
        value: what stands there.
        nearest: a value that would be accepted, or None.
        file: the file, or None when the configuration did not come from one.
    """

    def __init__(
        self,
        rule: str,
        *,
        address: str = "",
        value: Any = None,
        nearest: Any = None,
        file: str | Path | None = None,
    ) -> None:
        self.rule, self.address, self.value, self.nearest = rule, address, value, nearest
        self.file = None if file is None else str(file)
        super().__init__(rule)

    def __str__(self) -> str:
        where = self.address
        if where and self.value is not None:
            where += f" = {shorten(self.value)}"
        parts = [part for part in (self.file, where, self.rule) if part]
        line = ": ".join(parts)
        if self.nearest is not None:
            is_switch = isinstance(self.nearest, bool)
            line += f" (nearest: {str(self.nearest).lower() if is_switch else self.nearest})"
        return printable(line)

    def at(self, *, file: str | Path | None = None, prefix: str = "") -> ConfigError:
        """The same error, seen from further out: in `file`, below the address `prefix`."""
        address = join_address(prefix, self.address)
        return ConfigError(
            self.rule,
            address=address,
            value=self.value,
            nearest=self.nearest,
            file=self.file if file is None else file,
        )


class DataError(VitnasError):
    """The images are missing, unreadable or not what the configuration says."""


class MemoryLimitError(VitnasError):
    """Images or a network do not fit into the memory of this machine."""


class RunError(VitnasError):
    """A results folder cannot be used: another space, not writable, damaged, in use."""


class LostError(RunError):
    """Another of the processes that train one network has ended, so this one cannot go on."""


class DeviceError(VitnasError):
    """A device was asked for that this machine does not have."""


def reason_of(error: OSError) -> str:
    """Why the system refused, as the end of a line: `no such file or directory`."""
    reason = error.strerror or str(error) or type(error).__name__
    return reason[:1].lower() + reason[1:]


def printable(text: str) -> str:
    """`text` without line breaks, and with what a terminal would obey (escapes) spelled out."""
    return spelled_out(" ".join(text.split()))


def typed(path: str | Path) -> str:
    """`path` as a user types it in a command: quoted for a shell, and not read as an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def spelled_out(text: str) -> str:
    """`text` in its lines, with all else that a terminal would obey spelled out."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def in_one_line(text: str) -> str:
    """`text` with its line breaks and all else that a terminal would obey spelled out."""
    return spelled_out(text).replace("\n", "\\n")


def shorten(value: Any) -> str:
    """`value` as it would stand in YAML flow style, cut to a readable length."""
    if isinstance(value, str):
        text = f"'{value}'"
    elif isinstance(value, (list, tuple)):
        text = "[" + ", ".join(shorten(item) for item in value) + "]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{key}: {shorten(item)}" for key, item in value.items()) + "}"
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    else:
        text = str(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def join_address(*parts: str | int) -> str:
    """`join_address("model", "stages", 2, "groups")` -> `model.stages[2].groups`."""
    address = ""
    for part in parts:
        if part == "":
            continue
        if isinstance(part, int):
            address += f"[{part}]"
        else:
            address += part if not address or part.startswith("[") else f".{part}"
    return address


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to `name`, or None when nothing is close."""
    close = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return close[0] if close else None
