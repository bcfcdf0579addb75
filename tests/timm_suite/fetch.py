"""The tests in timm's source distribution, of the version that is installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path


class NotFetchedError(RuntimeError):
    """pip did not bring timm's source distribution, or it has no tests."""


def fetch_tests(folder: Path) -> Path:
    """Download and unpack into `folder` what is needed to run timm's tests.

    Returns:
        The folder with `tests` and `pyproject.toml` in it.

    Raises:
        NotFetchedError: with pip's last line.
    """
    wanted = f"timm=={version('timm')}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", ":all:", "--dest", str(folder), wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = list(folder.glob("timm-*.tar.gz"))
    if done.returncode or not archives:
        lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
        raise NotFetchedError(f"{wanted} as a source distribution: {lines[-1]}")
    with tarfile.open(archives[0]) as archive:
        parts = [
            member
            for member in archive.getmembers()
            if member.name.split("/", 1)[-1].startswith(("tests/", "pyproject.toml"))
        ]
        archive.extractall(folder, members=parts, filter="data")
    root = folder / archives[0].name.removesuffix(".tar.gz")
    if not (root / "tests" / "test_models.py").is_file():
        raise NotFetchedError(f"the source distribution of {wanted} has no tests/test_models.py")
    return root
