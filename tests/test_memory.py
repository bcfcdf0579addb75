"""What does not fit into the memory is refused before it is made."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

import pytest
import torch

from vitnas import memory
from vitnas.errors import MemoryLimitError
from vitnas.memory import check_memory, free_memory, keep_freed_memory


def test_what_fits_passes_and_what_does_not_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:  9999 kB\nMemAvailable:    1048576 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", file)
    assert free_memory() == 1 << 30
    check_memory(1 << 30, "images", "take fewer")
    with pytest.raises(MemoryLimitError) as caught:
        check_memory(3 << 30, "9 images", "take fewer")
    assert str(caught.value) == "9 images take 3.0 GiB and 1.0 GiB are free; take fewer"


@pytest.mark.parametrize("content", [None, "MemTotal: 9 kB\n", "MemAvailable: many kB\n"])
def test_where_the_system_does_not_say_nothing_is_refused(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "meminfo"
    if content is not None:
        file.write_text(content)
    monkeypatch.setattr(memory, "_MEMINFO", file)
    assert free_memory() is None
    check_memory(1 << 60, "images", "take fewer")


def test_memory_that_is_freed_and_taken_again_is_not_cleared_again() -> None:
    """Each page that the system clears is a page fault."""
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("not glibc")
    assert keep_freed_memory()
    faults = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        del_me = [torch.zeros(1 << 20) for _ in range(40)]  # 160 MiB, 41,000 pages
        del del_me
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert min(faults) < 4000  # other threads of the tests take pages, too
