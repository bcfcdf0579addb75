"""A measurement has its device for itself, waits for nobody for long, and leaves nothing locked."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from vitnas.engine.backends.gate import DeviceGate

DIES = """
import os, sys
from pathlib import Path
from vitnas.engine.backends.gate import DeviceGate
with DeviceGate("cpu", Path(sys.argv[1])).alone():
    os.kill(os.getpid(), 9)
"""


def test_epochs_share_and_a_measurement_waits_for_them(tmp_path: Path) -> None:
    order: list[str] = []
    gate = DeviceGate("cpu", tmp_path)
    with gate.shared(), gate.shared():
        measuring = threading.Thread(target=lambda: _alone(gate, order, "measured"))
        measuring.start()
        measuring.join(0.2)
        order.append("epochs ended")
    measuring.join(10)
    assert order == ["epochs ended", "measured"]


def test_no_new_epoch_begins_before_a_measurement_that_waits(tmp_path: Path) -> None:
    """Or epochs that overlap would keep it waiting for ever."""
    order: list[str] = []
    gate = DeviceGate("cpu", tmp_path)
    with gate.shared():
        measuring = threading.Thread(target=lambda: _alone(gate, order, "measured"))
        measuring.start()
        measuring.join(0.3)
        epoch = threading.Thread(target=lambda: _shared(gate, order, "epoch"))
        epoch.start()
        epoch.join(0.2)
        assert not order
    measuring.join(10)
    epoch.join(10)
    assert order == ["measured", "epoch"]


def test_devices_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with DeviceGate("cuda-GPU-1", tmp_path).alone(), DeviceGate("cuda-GPU-2", tmp_path).alone():
        pass


def test_a_process_that_is_killed_leaves_nothing_locked(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
    assert done.returncode == -9
    with DeviceGate("cpu", tmp_path).alone():
        pass


def _alone(gate: DeviceGate, order: list[str], what: str) -> None:
    with gate.alone():
        order.append(what)


def _shared(gate: DeviceGate, order: list[str], what: str) -> None:
    with gate.shared():
        order.append(what)
