"""Making a set complete: what is there stays, what is missing or damaged is made."""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.data.sets import complete, flip, small_set
from vitnas.data import build
from vitnas.data.build import FilesOrigin, announce
from vitnas.data.imageset import ImageSet, set_of
from vitnas.data.shard import build_shard
from vitnas.data.telling import Teller
from vitnas.errors import DataError


def times(images: ImageSet) -> list[int]:
    paths = (images.place(shard).with_suffix(".npy") for shard in range(images.num_shards))
    return [path.stat().st_ino for path in paths]


def test_a_second_time_nothing_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, files = small_set(tmp_path, 150)
    first = complete(images, files)
    assert [len(facts.sums) for facts in first] == [64, 64, 22]
    before = times(images)
    monkeypatch.setattr(build, "build_shard", lambda *_: pytest.fail("decoded again"))
    assert [facts.checksum for facts in complete(images, files)] == [
        facts.checksum for facts in first
    ]
    assert times(images) == before


def test_pillow_s_warnings_about_a_file_are_kept_away(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    images, files = small_set(tmp_path, 10)
    broken = Path(files[3].path)
    held = BytesIO()
    Image.new("RGB", (8, 8)).save(held, "TIFF")
    width = struct.pack("<HHI", 256, 4, 1)
    assert width in held.getvalue(), "the entry that says how wide it is, one number"
    broken.write_bytes(held.getvalue().replace(width, struct.pack("<HHI", 256, 4, 10**6)))
    for _ in ("decoded", "looked at again"):
        assert [list(facts.broken) for facts in complete(images, files)] == [[3]]
    assert not recwarn.list


@pytest.mark.slow
def test_many_images_are_decoded_by_other_processes(tmp_path: Path) -> None:
    images, files = small_set(tmp_path, 300)
    seen: list[str] = []
    found = complete(images, files, Teller(pytest.fail, seen.append))
    assert seen[0] == f"decoding 300 images {'┄' * 24} 0%"
    assert seen[-1] == f"decoding 300 images {'━' * 24} 100%, 0:00 left"
    assert len(seen) == 1 + images.num_shards
    again, _ = small_set(tmp_path / "data" / "..", 300)
    assert [facts.checksum for facts in found] == [
        facts.checksum for facts in complete(again, files)
    ]


def test_what_takes_long_is_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, files = small_set(tmp_path, 300)
    monkeypatch.setattr(build, "_LONG_S", 0.0)
    monkeypatch.setattr(build, "_built", lambda *_: iter([300]))
    notices: list[str] = []
    with pytest.raises(DataError, match="gone or damaged"):
        complete(images, files, Teller(notices.append))
    assert notices == [
        f"{tmp_path}/data: 300 images are decoded once to 4 x 4 pixels and kept: 14.4 kB in "
        f"{tmp_path}/home, about 10 s"
    ]


@pytest.mark.parametrize(("number", "is_said"), [(300, True), (200, False)])
def test_images_that_are_enlarged_are_told_from_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_said: bool
) -> None:
    """The images have 4 x 8 pixels, and those of the second half 4 x 4."""
    _, files = small_set(tmp_path, number)
    for file in files[: number // 2]:
        Image.new("RGB", (8, 4)).save(file.path)
    monkeypatch.setattr(build, "_built", lambda *_: iter([number]))
    for image_hw, said in (((4, 4), 0), ((4, 6), 15), ((6, 6), 30)):
        notices: list[str] = []
        images = set_of(tmp_path / "home", tmp_path / "data", files, image_hw)
        announce([FilesOrigin(images, files)], Teller(notices.append))
        height, width = image_hw
        assert notices == (said > 0) * is_said * [
            f"{tmp_path}/data: {said} of 30 images that were looked at are smaller than {height} x "
            f"{width} pixels and are enlarged"
        ]


def test_images_that_are_converted_are_told_from_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, files = small_set(tmp_path, 300)
    exif = Image.Exif()
    exif[0x0112] = 6
    for file in files[:100]:
        Image.new("L", (4, 4)).save(file.path)
    for file in files[100:200]:
        Image.new("L", (4, 4)).save(file.path, exif=exif)
    monkeypatch.setattr(build, "_built", lambda *_: iter([300]))
    notices: list[str] = []
    announce([FilesOrigin(images, files)], Teller(notices.append))
    assert notices == [
        f"{tmp_path}/data: of 30 images that were looked at 20 are grey, 10 are turned by EXIF; "
        "all are read upright, in RGB of 8 bits"
    ]


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_flipped_byte_is_found_and_its_shard_is_made_again(tmp_path: Path, suffix: str) -> None:
    images, files = small_set(tmp_path, 150)
    first = complete(images, files)
    path, before = images.place(1).with_suffix(suffix), times(images)
    good = images.place(1).with_suffix(".npy").read_bytes()
    flip(path, 200)
    again = complete(images, files)
    assert [facts.checksum for facts in again] == [facts.checksum for facts in first]
    assert images.place(1).with_suffix(".npy").read_bytes() == good
    changed = [one != other for one, other in zip(before, times(images), strict=True)]
    assert changed == [False, True, False]


def test_a_byte_that_a_disk_has_flipped_is_found_too(tmp_path: Path) -> None:
    """The file's time is as it was; what was not compared for longest is compared first."""
    images, files = small_set(tmp_path, 150)
    complete(images, files)
    path = images.place(2).with_suffix(".npy")
    good, there = path.read_bytes(), path.stat()
    flip(path)
    os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))
    complete(images, files)
    assert path.read_bytes() == good


def test_without_time_what_has_not_changed_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, files = small_set(tmp_path, 150)
    complete(images, files)
    asked: list[Path] = []
    monkeypatch.setattr(build, "COMPARING_S", 0.0)

    def is_sound(place: Path, *_: object) -> bool:
        asked.append(place)
        return True

    monkeypatch.setattr(build, "is_sound", is_sound)
    complete(images, files)
    assert asked == []
    os.utime(images.place(1).with_suffix(".npy"))
    complete(images, files)
    assert asked == [images.place(1)]


def test_what_a_killed_builder_has_made_is_kept(tmp_path: Path) -> None:
    images, files = small_set(tmp_path, 150)
    complete(images, files)
    before = times(images)
    images.place(2).with_suffix(".npz").unlink()
    (images.folder / ".vitnas.00.tmp").write_bytes(b"half")
    complete(images, files)
    assert times(images)[:2] == before[:2]
    assert times(images)[2] != before[2]
    assert not list(images.folder.glob(".*"))


def started(folder: Path, **how: Any) -> subprocess.Popen[str]:
    """A process of a group of its own that makes the set of the images in `folder`."""
    code = (
        "import sys; from pathlib import Path; from tests.data.sets import complete, listed;"
        "from vitnas.data.imageset import set_of;"
        "root = Path(sys.argv[1]); files = [listed(p) for p in sorted((root / 'data').iterdir())];"
        "complete(set_of(root / 'home', root / 'data', files, (4, 4)), files)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, text=True, start_new_session=True, **how)


@pytest.mark.slow
def test_a_builder_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    images, files = small_set(tmp_path, 2000)
    process = started(tmp_path)
    while process.poll() is None and len(list(images.folder.glob("*.npz"))) < 3:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = {path.name: path.stat().st_ino for path in images.folder.glob("*.npz")}
    assert there
    complete(images, files)
    assert len(list(images.folder.glob("*.npz"))) == images.num_shards == 32
    finished = {name: (images.folder / name).stat().st_ino for name in there}
    assert sum(finished[name] == inode for name, inode in there.items()) >= len(there) - 4


def is_decoding(process: subprocess.Popen[str], images: ImageSet) -> bool:
    return len(list(images.folder.glob("*.npz"))) >= 6


def is_starting_others(process: subprocess.Popen[str], images: ImageSet) -> bool:
    """The processes that decode have started, and import what they need."""
    with suppress(FileNotFoundError):  # a thread or process has just ended
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return any("numpy" in Path(f"/proc/{pid}/maps").read_text() for pid in children)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("when", [is_decoding, is_starting_others])
def test_ctrl_c_while_others_decode_is_no_traceback(
    tmp_path: Path, when: Callable[[subprocess.Popen[str], ImageSet], bool]
) -> None:
    images, _ = small_set(tmp_path, 4000)
    process = started(tmp_path, stderr=subprocess.PIPE)
    while process.poll() is None and not when(process, images):
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert said.count("Traceback") == said.count("\nKeyboardInterrupt") == 1
    assert "Loky" not in said


def test_two_at_once_decode_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, files = small_set(tmp_path, 100)
    made: list[Path] = []
    real, notices = build_shard, list[str]()

    def slowly(place: Path, *rest: object) -> int:
        time.sleep(0.05)
        made.append(place)
        return real(place, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "build_shard", slowly)

    def other() -> None:
        complete(images, files, Teller(notices.append))

    threads = [threading.Thread(target=other) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [images.place(0), images.place(1)]
    assert notices == ["another process reads the same images; waiting for it"]


def test_a_full_disk_is_one_line_and_leaves_what_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, files = small_set(tmp_path, 150)
    real = build_shard

    def full(place: Path, paths: list[str], image_hw: tuple[int, int]) -> int:
        if place.name == "00001":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
        return real(place, paths, image_hw)

    monkeypatch.setattr(build, "build_shard", full)
    with pytest.raises(
        DataError, match="cannot be written: no space left on device; set"
    ) as caught:
        complete(images, files)
    assert str(caught.value).startswith(str(tmp_path / "home"))
    assert sorted(path.name for path in images.folder.glob("*.np*")) == ["00000.npy", "00000.npz"]
    before = images.place(0).with_suffix(".npy").stat().st_ino
    monkeypatch.setattr(build, "build_shard", real)
    complete(images, files)
    assert times(images)[0] == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    (tmp_path / "home").write_text("a file")
    with pytest.raises(DataError, match=r"home: cannot be written: .*VITNAS_IMAGE_CACHE"):
        complete(images, files)


def test_an_image_that_is_away_while_it_is_read_is_broken_until_it_is_back(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    away = tmp_path / "away"
    Path(files[3].path).rename(away)
    for _ in range(2):
        (facts,) = complete(images, files)
        assert facts.broken == {3: "No such file or directory"}
    before = times(images)
    away.rename(files[3].path)
    (facts,) = complete(images, files)
    assert facts.broken == {}
    assert times(images) != before
