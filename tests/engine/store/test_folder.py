"""One driver a run, and looking at the lock disturbs nobody."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from vitnas.engine.store.folder import is_locked, locked
from vitnas.errors import RunError


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(RunError, match="another search is writing"), locked(tmp_path):
            pass
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "nowhere")


def test_a_glance_at_the_lock_keeps_no_driver_out(tmp_path: Path) -> None:
    from filelock import FileLock

    glance = FileLock(tmp_path / ".lock", thread_local=False)
    glance.acquire()
    threading.Timer(0.3, glance.release).start()
    with locked(tmp_path):
        assert is_locked(tmp_path)
