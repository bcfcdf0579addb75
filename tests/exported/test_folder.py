"""A folder is written whole or not at all, and only where there is nothing yet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vitnas.errors import DataError, RunError
from vitnas.exported.folder import CLASSES_FILE, beside, read_classes, write_classes


def write(folder: Path) -> None:
    with beside(folder) as draft:
        (draft / "a.txt").write_text("a")
        (draft / "b.txt").write_text("b")


def write_on_a_full_disk(folder: Path) -> None:
    with beside(folder) as draft:
        (draft / "a.txt").write_text("a")
        raise OSError(28, "No space left on device")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    with beside(tmp_path / "nets" / "one") as draft:
        (draft / "a.txt").write_text("a")
        assert not (tmp_path / "nets" / "one").exists()
    assert names(tmp_path / "nets") == ["one"]
    assert names(tmp_path / "nets" / "one") == ["a.txt"]


@pytest.mark.parametrize("kind", ["full", "file", "broken link"])
def test_what_is_there_stays(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "net"
    if kind == "full":
        target.mkdir()
        (target / "mine.txt").write_text("mine")
    elif kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(RunError, match="give a new or an empty folder"):
        write(target)
    assert names(tmp_path) == ["net"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_failure_while_writing_leaves_nothing(tmp_path: Path, is_there: bool) -> None:
    target = tmp_path / "net"
    if is_there:
        target.mkdir()
    with pytest.raises(RunError, match="net: cannot be written: no space left on device"):
        write_on_a_full_disk(target)
    assert [path for path in tmp_path.rglob("*") if path != target] == []
    assert target.exists() == is_there


def test_a_parent_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        write(tmp_path / "file" / "net")


def test_others_may_read_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "net")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "net").stat().st_mode & 0o777 == 0o777 & ~mask


@pytest.mark.parametrize("kind", ["dot", "link", "folder"])
def test_an_empty_folder_stays_the_one_it_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the current one, one behind a link, and so a mount point."""
    there = tmp_path / "there"
    there.mkdir()
    before = there.stat().st_ino
    (tmp_path / "link").symlink_to(there)
    monkeypatch.chdir(there)
    write({"dot": Path(), "link": tmp_path / "link", "folder": there}[kind])
    assert there.stat().st_ino == before
    assert (tmp_path / "link").is_symlink()
    assert names(there) == ["a.txt", "b.txt"]
    assert names(tmp_path) == ["link", "there"]


def test_a_disk_that_fills_leaves_the_empty_folder_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename
    moved: list[Path] = []

    def full(self: Path, target: Path) -> Path:
        if moved:
            raise OSError(28, "No space left on device")
        moved.append(target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(RunError, match="cannot be written: no space left"):
        write(tmp_path)
    assert moved
    assert not names(tmp_path)


def test_names_of_classes_are_one_a_line(tmp_path: Path) -> None:
    assert read_classes(tmp_path) == ()
    write_classes(tmp_path, ())
    assert not list(tmp_path.iterdir())
    write_classes(tmp_path, ("cat", "two\nlines", "a\u2028b"))
    assert read_classes(tmp_path) == ("cat", "two lines", "a b")
    (tmp_path / CLASSES_FILE).write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"labels\.txt: is not a text file in UTF-8"):
        read_classes(tmp_path)
