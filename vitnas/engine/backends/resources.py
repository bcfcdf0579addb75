"""What trainings run on: how many at a time, with what share of the machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from vitnas.errors import DeviceError

_DEVICE_FILES = ("nvidia[0-9]*", "kfd", "dxg")  # NVIDIA, AMD, Windows' subsystem for Linux


@dataclass(frozen=True)
class Resources:
    """What a search runs on.

    Attributes:
        workers: trainings at a time.
        gpus: GPUs, or the share of one, for each; 0 on the CPU.
        threads: CPU threads of torch for each.
        cpu_share: CPUs that Ray sets aside for each.
    """

    workers: int
    gpus: float
    threads: int
    cpu_share: float = 1.0

    @property
    def device(self) -> str:
        """torch's name of what to train on."""
        return "cuda" if self.gpus else "cpu"

    @property
    def memory_share(self) -> float:
        """Share of its GPU's memory that a training may use."""
        return min(1.0, self.gpus or 1.0)


def check_devices(gpus: float | None) -> None:
    """Refuse GPUs at once on a machine that plainly has none; looks at device files alone.

    Raises:
        DeviceError: `gpus` is above 0, and no GPU has a device file.
    """
    if not gpus or sys.platform != "linux":
        return
    if not any(next(Path("/dev").glob(name), None) for name in _DEVICE_FILES):
        raise DeviceError(f"--gpus-per-trial {gpus:g}: this machine has no CUDA device")
