"""Something to do once another package has been imported, and what waits until then."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest

from vitnas.hook import interrupts_wait_for, when_imported


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "a_package_for_the_hook"
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("from a_package_for_the_hook import inner\n")
    (tmp_path / name / "inner.py").write_text("value = 1\n")
    for module in (name, f"{name}.inner"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return name


def test_is_called_once_right_after_the_import(package: str) -> None:
    found = []
    finders = list(sys.meta_path)
    when_imported(f"{package}.inner", lambda: found.append(sys.modules[f"{package}.inner"].value))
    assert not found
    module = __import__(package)
    assert found == [1]
    assert sys.meta_path == finders
    assert module.inner.__loader__ is module.inner.__spec__.loader
    assert module.inner.__loader__.get_source(f"{package}.inner") == "value = 1\n"


def test_is_called_at_once_when_it_is_imported_already() -> None:
    found: list[int] = []
    when_imported("sys", lambda: found.append(1))
    assert found == [1]


def test_two_may_wait_for_one_import(package: str) -> None:
    found: list[int] = []
    when_imported(f"{package}.inner", lambda: found.append(1))
    when_imported(f"{package}.inner", lambda: found.append(2))
    __import__(package)
    assert sorted(found) == [1, 2]


def test_waits_for_an_import_that_succeeds(package: str, tmp_path: Path) -> None:
    found: list[int] = []
    inner = tmp_path / package / "inner.py"
    inner.write_text("raise ValueError('broken')\n")
    when_imported(f"{package}.inner", lambda: found.append(1))
    with pytest.raises(ValueError, match="broken"):
        __import__(package)
    assert not found
    inner.write_text("value = 12345\n")
    __import__(package)
    assert found == [1]


def test_an_interrupt_waits_for_the_end_of_an_import(package: str, tmp_path: Path) -> None:
    """Also where another thread hears the signal: numpy has some before torch is imported."""
    done, over = tmp_path / "done", threading.Event()
    code = "import os, pathlib, signal", "os.kill(os.getpid(), signal.SIGINT)"
    wait = "sum(range(1000000))", f"pathlib.Path({str(done)!r}).touch()"
    (tmp_path / package / "inner.py").write_text("\n".join((*code, *wait)))
    interrupts_wait_for(f"{package}.inner")
    before = signal.getsignal(signal.SIGINT)
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            __import__(package)
    finally:
        over.set()
        other.join()
    assert done.exists()
    assert signal.getsignal(signal.SIGINT) is before
