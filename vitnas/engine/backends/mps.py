"""NVIDIA's Multi-Process Service (MPS): processes compute on one card at once, not in turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_CONTROL = "nvidia-cuda-mps-control"
_PIPES, _LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
_USUAL = Path("/tmp/nvidia-mps")
_PATIENCE_S = 30.0
_TURNS = "trainings on one GPU take turns"
_PROBE = """
import ctypes
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
raise SystemExit(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
"""


class Sharing(NamedTuple):
    """How processes share a card.

    Attributes:
        by_mps: whether at once, and not in turns.
        line: that and why, for the user.
    """

    by_mps: bool
    line: str


@contextmanager
def shared_cards() -> Iterator[Sharing]:
    """Inside, CUDA processes that this one starts share their cards by MPS, where that works.

    Without MPS the driver gives a card to one process after the other, which leaves most of it
    idle where networks are small. The service is started here and ended afterwards. One that runs
    already is used and left alone. Where it is missing, or no process can use a card with it, all
    is as without.
    """
    control = shutil.which(_CONTROL)
    if control is None:
        yield Sharing(False, f"{_TURNS}: {_CONTROL} is not installed")
        return
    if _PIPES in os.environ or (_USUAL / "control").exists():
        yield Sharing(True, "trainings share each GPU by the MPS that runs here")
        return
    with tempfile.TemporaryDirectory(prefix="vitnas-mps-", ignore_cleanup_errors=True) as folder:
        places = {_PIPES: folder, _LOGS: folder}
        reason = _start(control, places)
        if reason:
            yield Sharing(False, f"{_TURNS}: MPS does not work here ({reason})")
            return
        os.environ.update(places)
        try:
            yield Sharing(True, "trainings share each GPU by MPS")
        finally:
            for name in places:
                os.environ.pop(name, None)
            _stop(control, places)


def _start(control: str, places: Mapping[str, str]) -> str:
    """Start the service and a process that uses a card with it; why not, or nothing."""
    environment = {**os.environ, **places}
    try:
        # no pipes: the service would hold them open
        _run([control, "-d"], environment)
        try:
            _run([sys.executable, "-c", _PROBE], environment)
        except (OSError, subprocess.SubprocessError):
            _stop(control, places)
            return "no process can use a card with it"
    except (OSError, subprocess.SubprocessError) as error:
        return str(error).splitlines()[0]
    return ""


def _stop(control: str, places: Mapping[str, str]) -> None:
    with suppress(OSError, subprocess.SubprocessError):
        _run([control], {**os.environ, **places}, b"quit\n")


def _run(command: list[str], environment: Mapping[str, str], said: bytes = b"") -> None:
    subprocess.run(
        command,
        env=environment,
        input=said,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_PATIENCE_S,
        check=True,
    )
