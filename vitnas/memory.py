"""The machine's memory: whether something fits into it, before it is made."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from vitnas.errors import MemoryLimitError

_MEMINFO = Path("/proc/meminfo")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_KEPT, _LARGE = 1 << 30, 32 << 20


def free_memory() -> int | None:
    """Bytes that this machine has left without swapping; None where the system does not say."""
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration, ValueError):
        return None


def check_memory(needed: int, what: str, hint: str) -> None:
    """Refuse what takes more bytes than are free.

    Args:
        needed: bytes, rather too few than too many.
        what: what takes them, e.g. `1,797 images`.
        hint: what to do instead.

    Raises:
        MemoryLimitError: it does not fit.
    """
    free = free_memory()
    if free is not None and needed > free:
        gib = f"{needed / 2**30:,.1f} GiB and {free / 2**30:,.1f} GiB are free"
        raise MemoryLimitError(f"{what} take {gib}; {hint}")


@cache
def keep_freed_memory() -> bool:
    """Let this process keep up to 1 GiB that it has freed, in blocks of less than 32 MiB.

    A step of training frees what it has taken and takes it again. By default glibc gives such
    memory back to the system, which clears each page anew.

    Returns:
        False where the C library is not glibc; nothing is changed then.
    """
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is None:
        return False
    return bool(change(_M_TRIM_THRESHOLD, _KEPT)) and bool(change(_M_MMAP_THRESHOLD, _LARGE))
