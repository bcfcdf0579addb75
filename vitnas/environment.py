"""What a result depends on besides the code: versions, hardware, command, git revision."""

from __future__ import annotations

import logging
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from vitnas.errors import spelled_out

_PACKAGES = ("vitnas", "torch", "timm", "fvcore", "optuna", "ray", "numpy")


def session_facts(**more: Any) -> dict[str, Any]:
    """The facts of this session and `more`, as plain values."""
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command_line(),
        "versions": {"python": platform.python_version(), **_versions()},
        "hardware": hardware(),
        "git_revision": git_revision(),
        **more,
    }


def command_line() -> str:
    """The command as a user would type it in a shell, without the folder of the program.

    Bytes that are no UTF-8, and what else cannot be printed, are spelled out.
    """
    return spelled_out(shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]))


def cache_home() -> Path | None:
    """`$XDG_CACHE_HOME/vitnas`, or `~/.cache/vitnas`; None where neither is known."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".cache") / "vitnas"
    except RuntimeError:  # there is no home folder
        return None


def hardware() -> Mapping[str, Any]:
    """CPU model, cores, memory in GB."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages * size / 1e9, 1),
    }


def git_revision() -> str | None:
    """The checkout's revision, with `+` when files differ from it; None outside a checkout."""
    folder = Path(__file__).resolve().parents[1]
    revision = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not revision:
        return None
    return revision + ("+" if _git(folder, "status", "--porcelain", "-uno") else "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def cpu_model() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@contextmanager
def only_errors_of(name: str) -> Iterator[None]:
    """Inside, the logger of a package says nothing below an error."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
