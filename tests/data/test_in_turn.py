"""Data sets that are read from beginning to end: once, and the same as in memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import IterableDataset

from tests.data.sets import flip
from vitnas.config.data import DataConfig
from vitnas.data.cache import held_sets
from vitnas.data.foreign import _read_all
from vitnas.data.imageset import FACTS_FILE, ImageSet
from vitnas.data.in_turn import read_in_turn
from vitnas.data.kept import Part
from vitnas.data.telling import Teller
from vitnas.errors import DataError

CONFIG = DataConfig(name="timm", dataset="wds/", root="somewhere")


class Stream(IterableDataset[Any]):
    """So many images, each with pixels of its own; it announces `told` of them."""

    def __init__(self, number: int = 150, told: int | None = None, pause: float = 0.0) -> None:
        self.number, self.told, self.pause, self.starts = number, told, pause, 0

    def __len__(self) -> int:
        return self.number if self.told is None else self.told

    def __iter__(self) -> Iterator[Any]:
        self.starts += 1
        for index in range(self.number):
            time.sleep(self.pause)
            yield torch.full((3, 8, 6), index % 256, dtype=torch.uint8), index % 7


def read(home: Path, data: Any, key: str = "key", teller: Teller | None = None) -> Part:
    return read_in_turn(home, key, CONFIG, data, (8, 6), teller or Teller())


def the_set(home: Path) -> ImageSet:
    (held,) = held_sets(home)
    return held.images


def inodes(images: ImageSet) -> list[tuple[int, int]]:
    """With the times: a file system may give the number of a file that is gone to the next one."""
    there = [path.stat() for path in sorted(images.folder.glob("*.npy"))]
    return [(one.st_ino, one.st_mtime_ns) for one in there]


@pytest.mark.parametrize("told", [150, 100, 192, 5000, 0])
def test_the_cache_gives_what_memory_gives_whatever_is_announced(tmp_path: Path, told: int) -> None:
    data = Stream(told=told)
    memory = _read_all(CONFIG, data, (8, 6))
    for _ in range(2):
        part = read(tmp_path, data)
        assert torch.equal(part.images[:], memory.images[:])
        assert torch.equal(part.labels, memory.labels)
        assert (part.digest, part.skipped) == (memory.digest, ())
    assert data.starts == 2, "once for memory, once for the cache"
    assert the_set(tmp_path).facts.number == 150


def test_another_key_is_another_set(tmp_path: Path) -> None:
    assert len(read(tmp_path, Stream()).labels) == 150
    assert len(read(tmp_path, Stream(80), "another").labels) == 80
    assert len(held_sets(tmp_path)) == 2


@pytest.mark.parametrize("damage", ["gone", "a byte has changed"])
def test_only_a_part_that_is_missing_or_damaged_is_written_again(
    tmp_path: Path, damage: str
) -> None:
    first = read(tmp_path, Stream()).images[:]
    images = the_set(tmp_path)
    before = inodes(images)
    place = images.place(1).with_suffix(".npy")
    place.unlink() if damage == "gone" else flip(place)
    data = Stream()
    assert torch.equal(read(tmp_path, data).images[:], first)
    same = [one == other for one, other in zip(before, inodes(images), strict=True)]
    assert same == [True, False, True]
    assert data.starts == 1


def test_facts_that_are_damaged_are_found_again(tmp_path: Path) -> None:
    first = read(tmp_path, Stream()).images[:]
    facts = the_set(tmp_path).folder / FACTS_FILE
    facts.write_text("{")
    assert torch.equal(read(tmp_path, Stream()).images[:], first)
    told = json.loads(facts.read_text())
    facts.write_text(json.dumps(told | {"number": 151}))
    with pytest.raises(DataError, match="gives other images than before; start again"):
        read(tmp_path, Stream())
    assert torch.equal(read(tmp_path, Stream()).images[:], first)


def test_what_ends_too_early_is_read_to_its_end_next_time(tmp_path: Path) -> None:
    class Torn(Stream):
        def __iter__(self) -> Iterator[Any]:
            for index, item in enumerate(super().__iter__()):
                if index == 140:
                    raise OSError("the line is gone")
                yield item

    with pytest.raises(DataError, match="cannot be read to its end: OSError: the line is gone"):
        read(tmp_path, Torn())
    images = the_set(tmp_path)
    assert images.facts.number == 0, "not whole"
    before = inodes(images)
    assert len(before) == 2
    part = read(tmp_path, Stream())
    assert len(part.labels) == 150
    assert inodes(images)[:2] == before


class Grey(Stream):
    def __iter__(self) -> Iterator[Any]:
        yield torch.zeros(1, 8, 6, dtype=torch.uint8), 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Stream(0), "gives a data set without images"),
        (Grey(), "item 0 has 1 channel, and the first one 3"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"^data set timm: {message}$"):
        read(tmp_path, data)


def test_it_is_said_beforehand_how_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.data.build._LONG_S", 0.0)
    notices: list[str] = []
    bars: list[str] = []
    read(tmp_path, Stream(), teller=Teller(notices.append, bars.append))
    where = f"wds/ in {Path.cwd()}/somewhere"
    assert f"{where}: 150 images are decoded once to 8 x 6 pixels and kept: 21.6 kB" in notices[0]
    assert bars[0].startswith("decoding 150 images ")


def test_images_that_are_enlarged_are_told_from_the_first_ones(tmp_path: Path) -> None:
    notices: list[str] = []
    read_in_turn(tmp_path, "key", CONFIG, Stream(), (8, 8), Teller(notices.append))
    said = "32 of 32 images that were looked at are smaller than 8 x 8 pixels and are enlarged"
    assert notices == [f"wds/ in {Path.cwd()}/somewhere: {said}"]


def test_images_that_are_converted_are_told_from_the_first_ones(tmp_path: Path) -> None:
    class Known(Stream):
        kinds = [(), ("grey",), ("grey of 16 bits", "turned by EXIF")] * 10 + [(), ()]

    notices: list[str] = []
    for _ in range(2):
        read(tmp_path, Known(), teller=Teller(notices.append))
    said = "10 are grey, 10 are grey of 16 bits, 10 are turned by EXIF; all are read upright"
    (line,) = notices
    assert f"/somewhere: of 32 images that were looked at {said}, in RGB of 8 bits" in line


@pytest.mark.slow
def test_a_builder_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    code = (
        "import sys; from tests.data.test_in_turn import *;"
        "read(Path(sys.argv[1]), Stream(640, pause=0.002))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    while process.poll() is None and len(list(tmp_path.glob("*/*.npz"))) < 3:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = {path: path.stat().st_ino for path in tmp_path.glob("*/*.npz")}
    assert there
    part = read(tmp_path, Stream(640))
    assert all(path.stat().st_ino == inode for path, inode in there.items())
    assert torch.equal(part.images[:], _read_all(CONFIG, Stream(640), (8, 6)).images[:])


@pytest.mark.slow
def test_two_at_once_read_it_once(tmp_path: Path) -> None:
    code = (
        "import sys; from tests.data.test_in_turn import *; data = Stream(200, pause=0.005);"
        "part = read(Path(sys.argv[1]), data); print(data.starts, len(part.labels))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate()[0].split() for process in both)
    assert said == [["0", "200"], ["1", "200"]]
