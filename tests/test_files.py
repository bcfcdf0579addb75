"""Files are written whole or not at all, and never through a link or over a stranger's."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from vitnas.errors import RunError
from vitnas.files import (
    append_line,
    check_replaceable,
    exists,
    is_file,
    open_file,
    own_folder,
    read_bytes,
    read_input,
    remove_files,
    remove_folder,
    write_bytes,
    write_text,
    writing,
)


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.txt"
    write_text(target, "old")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_name_that_is_no_utf_8_can_be_written_of(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "it lies in a\udcffb")
    assert (tmp_path / "a.txt").read_text() == "it lies in a\\udcffb"


def test_a_planted_temporary_name_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(os, "urandom", bytes)  # somebody guessed the name
    (tmp_path / f".vitnas.{bytes(8).hex()}.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "a.txt", "new")
    assert victim.read_text() == "mine"


def test_temporary_names_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    monkeypatch.setattr(Path, "replace", lambda self, target: names.append(self.name))
    write_text(tmp_path / "a", "1")
    write_text(tmp_path / "a", "1")
    assert len(set(names)) == 2


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    target = tmp_path / "mine.md"
    target.write_text("mine")
    (tmp_path / "report.md").symlink_to(target)
    write_text(tmp_path / "report.md", "new")
    assert target.read_text() == "mine"
    assert not (tmp_path / "report.md").is_symlink()


def test_a_new_file_has_the_mode_that_the_user_asks_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_text(tmp_path / "space.yaml", "x")
    assert caught.value.filename == str(tmp_path / "space.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["space.yaml"]


def test_an_own_folder_is_neither_a_link_nor_a_file(tmp_path: Path) -> None:
    assert own_folder(tmp_path / "a" / "weights").is_dir()
    assert own_folder(tmp_path / "a" / "weights").is_dir()
    (tmp_path / "configs").symlink_to(tmp_path / "a")
    with pytest.raises(RunError, match="configs: is a link"):
        own_folder(tmp_path / "configs")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file: is a file"):
        own_folder(tmp_path / "file")


def test_only_files_of_these_names_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "out.training"
    folder.mkdir()
    for name in ("log.jsonl", "thesis.txt"):
        (folder / name).write_text("x")
    remove_folder(folder, ["log.jsonl", "gone"])
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    remove_folder(folder, ["thesis.txt"])
    assert not folder.exists()


def test_nothing_is_deleted_behind_a_link(tmp_path: Path) -> None:
    theirs = tmp_path / "models"
    theirs.mkdir()
    (theirs / "0.safetensors").write_text("mine")
    (tmp_path / "weights").symlink_to(theirs)
    remove_files(tmp_path / "weights", ["0.safetensors"])
    remove_folder(tmp_path / "weights", ["0.safetensors"])
    assert (theirs / "0.safetensors").exists()
    assert (tmp_path / "weights").is_symlink()


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="regular"):
        open_file(tmp_path / "fifo")
    with pytest.raises(OSError, match="regular"):
        open_file("/dev/zero")
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "s"))
        with pytest.raises(OSError):
            open_file(tmp_path / "s")


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bytes(tmp_path / "a", 5) == b"12345"
    with pytest.raises(OSError, match="larger than"):
        read_bytes(tmp_path / "a", 4)


def test_a_pipe_is_read_to_its_end() -> None:
    """As of a shell's `<(...)`: written to before and while it is read."""
    reader, writer = os.pipe()
    os.write(writer, b"name: ")

    def finish() -> None:
        os.write(writer, b"x")
        os.close(writer)

    late = threading.Timer(0.05, finish)
    late.start()
    assert read_input(f"/dev/fd/{reader}", 10) == b"name: x"
    late.join()
    os.close(reader)


def test_a_pipe_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.files._PIPE_S", 0.05)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(TimeoutError, match="no end of it within"):
        read_input(tmp_path / "fifo", 10)
    reader, silent = os.pipe()
    os.write(silent, b"1")
    with pytest.raises(TimeoutError, match="no end of it within"):
        read_input(f"/dev/fd/{reader}", 10)
    os.close(reader)
    os.close(silent)
    with pytest.raises(OSError, match="larger than"):
        read_input("/dev/zero", 10)


def test_a_name_that_no_system_takes_does_not_exist() -> None:
    assert not exists("a\0b")
    assert not exists("x" * 5000)
    assert not exists("")
    assert not is_file("x" * 5000)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert is_file(tmp_path / "a")
    assert exists(tmp_path)
    assert not is_file(tmp_path)


def test_what_cannot_be_written_is_named_as_the_user_knows_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = r"^results/run: cannot be written: file exists$"
    with pytest.raises(RunError, match=message), writing("results/run"):
        write_text(tmp_path / "file" / "draft", "text")


def test_a_stranger_s_file_is_not_replaced(tmp_path: Path) -> None:
    check_replaceable(tmp_path / "new", lambda head: False)
    (tmp_path / "empty").write_text("")
    check_replaceable(tmp_path / "empty", lambda head: False)
    (tmp_path / "thesis").write_text("mine")
    check_replaceable(tmp_path / "thesis", lambda head: head == b"mine")
    with pytest.raises(RunError, match="thesis: is a file that vitnas did not write"):
        check_replaceable(tmp_path / "thesis", lambda head: False)
    with pytest.raises(RunError, match="cannot be replaced: is a directory"):
        check_replaceable(tmp_path, lambda head: True)
    message = "thesis/new: cannot be written to .*thesis is not a writable folder"
    with pytest.raises(RunError, match=message):
        check_replaceable(tmp_path / "thesis" / "new", lambda head: True)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(RunError, match="cannot be replaced: is not a regular file"):
        check_replaceable(tmp_path / "fifo", lambda head: True)


def test_a_line_is_added_and_half_a_line_ends_before_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_line(path, "one")
    append_line(path, "two")
    assert path.read_text() == "one\ntwo\n"
    path.write_text("hal")
    append_line(path, "three")
    assert path.read_text() == "hal\nthree\n"


def test_a_line_is_not_added_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        append_line(tmp_path / "a.jsonl", "one")
    assert (tmp_path / "victim").read_text() == "mine"
