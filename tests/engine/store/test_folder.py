"""One driver a run, and looking at the lock disturbs nobody."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from vitnas.engine.store.folder import check_folder, check_study, is_locked, locked, make_folder
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


@pytest.mark.parametrize("name", ["configs", "weights", "tensorboard", ".tune"])
def test_a_folder_of_the_run_that_leads_elsewhere_is_refused_at_once(
    tmp_path: Path, name: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    check_folder(run)
    (run / name).symlink_to(tmp_path)
    with pytest.raises(RunError, match=f"{name}: is a link"):
        check_folder(run)
    (run / name).unlink()
    (run / name).write_text("")
    with pytest.raises(RunError, match=f"{name}: is a file"):
        check_folder(run)


def test_a_link_to_an_empty_folder_may_become_a_run(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to("disk")
    check_folder(tmp_path / "run")
    make_folder(tmp_path / "run")


def test_a_run_whose_recipe_is_tuned_is_a_run(tmp_path: Path) -> None:
    """`vitnas status` had said that it was none while its search was busy."""
    (tmp_path / "tune").mkdir()
    with locked(tmp_path / "tune"), pytest.raises(RunError, match=r"tunes the recipe first$"):
        check_study(tmp_path)
    with pytest.raises(RunError, match=r"while it tuned the recipe; the same command goes on$"):
        check_study(tmp_path)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("digts", r"digts: no such folder, so no study\.db in it \(nearest: .*/digits\)"),
        ("other", r"other: no such folder, so no study\.db in it$"),
        (
            "digits/study.db",
            r"is a file; a run is a folder with a study\.db \(nearest: .*/digits\)",
        ),
        ("", r"no study\.db in it, so it is not a run of vitnas \(nearest: .*/digits\)"),
        ("empty", r"empty: no study\.db in it, so it is not a run of vitnas$"),
    ],
)
def test_what_is_no_run_names_the_nearest(tmp_path: Path, name: str, line: str) -> None:
    for folder in ("digits", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "digits" / "study.db").touch()
    check_study(tmp_path / "digits")
    with pytest.raises(RunError, match=line):
        check_study(tmp_path / name)
