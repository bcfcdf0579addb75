"""The machine's memory: whether something fits into it, before it is made."""

from __future__ import annotations

from pathlib import Path

from vitnas.errors import MemoryLimitError

_MEMINFO = Path("/proc/meminfo")


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
