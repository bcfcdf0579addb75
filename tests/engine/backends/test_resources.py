"""Shares of a machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vitnas.engine.backends import resources
from vitnas.engine.backends.resources import Resources, check_devices
from vitnas.errors import DeviceError


@pytest.mark.parametrize(
    ("gpus", "device", "share"),
    [(0.0, "cpu", 1.0), (0.25, "cuda", 0.25), (1.0, "cuda", 1.0), (2.0, "cuda", 1.0)],
)
def test_a_training_may_use_its_share_of_one_gpu(gpus: float, device: str, share: float) -> None:
    found = Resources(workers=1, gpus=gpus, threads=1)
    assert (found.device, found.memory_share) == (device, share)


def test_a_machine_without_device_files_has_no_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(resources, "_DEVICE_FILES", ("no-such-device*",))
    check_devices(None)
    check_devices(0.0)
    with pytest.raises(DeviceError, match=r"--gpus-per-trial 0\.5: this machine has no CUDA"):
        check_devices(0.5)
    monkeypatch.setattr(resources, "_DEVICE_FILES", ("null",))
    check_devices(0.5)
