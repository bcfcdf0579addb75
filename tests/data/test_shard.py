"""A shard: what it holds, and that damage to either of its files is seen."""

from __future__ import annotations

import ast
import os
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.sets import flip, image_files
from vitnas.data.decode import fitted, read_rgb
from vitnas.data.shard import (
    build_shard,
    compared,
    is_fresh,
    is_sound,
    offset_of,
    read_facts,
)

SHAPE = (5, 3, 4, 6)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A shard of five images, of which the third is broken."""
    paths = [file.path for file in image_files(tmp_path / "data", 5)]
    Path(paths[2]).write_bytes(b"no image")
    build_shard(tmp_path / "00000", paths, (4, 6))
    return tmp_path / "00000"


def test_the_file_is_numpy_s_to_the_byte(place: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "again.npy", np.load(place.with_suffix(".npy")))
    assert place.with_suffix(".npy").read_bytes() == (tmp_path / "again.npy").read_bytes()


def test_pixels_are_those_of_the_files(place: Path, tmp_path: Path) -> None:
    pixels = np.load(place.with_suffix(".npy"))
    assert pixels.shape == SHAPE
    for index in (0, 1, 3, 4):
        image = read_rgb(tmp_path / "data" / f"{index:04}.png")
        assert (pixels[index] == fitted(image, (4, 6))).all()


def test_facts_name_the_broken_and_sum_the_others_exactly(place: Path) -> None:
    facts, pixels = read_facts(place, 5), np.load(place.with_suffix(".npy")).astype(np.int64)
    assert facts is not None
    assert facts.broken == {2: "its format is not known"}
    assert (facts.sums[:, 0] == pixels.sum(axis=(2, 3))).all()
    assert (facts.sums[:, 1] == (pixels * pixels).sum(axis=(2, 3))).all()
    assert not pixels[2].any()


def test_threads_that_read_shards_parse_one_at_a_time(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11.7 raised SystemError now and then: AST constructor recursion depth mismatch."""
    literal_eval, parsing, most = ast.literal_eval, 0, 0

    def watched(text: str) -> Any:
        nonlocal parsing, most
        parsing += 1
        most = max(most, parsing)
        time.sleep(1e-3)
        parsing -= 1
        return literal_eval(text)

    def is_read(_: int) -> bool:
        return read_facts(place, 5) is not None and offset_of(place, SHAPE) is not None

    monkeypatch.setattr(ast, "literal_eval", watched)
    with ThreadPool(4) as pool:
        assert all(pool.map(is_read, range(8)))
    assert most == 1


def test_sums_in_pieces_are_the_same(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.data.shard._AT_ONCE", 150)
    paths = [file.path for file in image_files(tmp_path / "data", 5)]
    build_shard(tmp_path / "00001", paths, (4, 6))
    one, two = read_facts(place, 5), read_facts(tmp_path / "00001", 5)
    assert one is not None
    assert two is not None
    sound = [0, 1, 3, 4]
    assert (one.sums[sound] == two.sums[sound]).all()


@pytest.mark.parametrize("offset", [130, -1])
def test_a_flipped_byte_is_seen(place: Path, offset: int) -> None:
    facts = read_facts(place, 5)
    assert facts is not None
    assert is_fresh(place)
    assert is_sound(place, facts.checksum, SHAPE)
    flip(place.with_suffix(".npy"), offset)
    assert not is_fresh(place)
    assert not is_sound(place, facts.checksum, SHAPE)


def test_comparing_notes_its_time(place: Path) -> None:
    facts = read_facts(place, 5)
    assert facts is not None
    os.utime(place.with_suffix(".npz"), (1, 1))
    assert compared(place) == 1
    assert not is_fresh(place)
    assert is_sound(place, facts.checksum, SHAPE)
    assert is_fresh(place)
    assert compared(place) > 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone", "another array"])
def test_damaged_facts_are_no_facts(place: Path, damage: str) -> None:
    path = place.with_suffix(".npz")
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        flip(path, content.index(b"sums.npy") + 200)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "gone":
        path.unlink()
    else:
        np.savez(path, sums=np.zeros(3))
    assert read_facts(place, 5) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_no_flipped_byte_is_an_error(place: Path, suffix: str) -> None:
    """zipfile says that the file is encrypted or of a later version; numpy has its own errors."""
    path = place.with_suffix(suffix)
    content = path.read_bytes()
    for index in range(len(content)):
        for bits in (1, 32, 128):
            damaged = bytearray(content)
            damaged[index] ^= bits
            path.write_bytes(damaged)
            read_facts(place, 5)
            offset_of(place, SHAPE)


def test_facts_of_other_images_are_no_facts(place: Path) -> None:
    assert read_facts(place, 4) is None


@pytest.mark.parametrize("damage", ["cut", "longer", "gone", "no array", "another shape"])
def test_a_file_that_holds_something_else_has_no_pixels(place: Path, damage: str) -> None:
    path = place.with_suffix(".npy")
    assert offset_of(place, SHAPE) == path.stat().st_size - 5 * 3 * 4 * 6
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "another shape":
        np.save(path, np.zeros((5, 3, 6, 4), np.uint8))
    else:
        new = {"cut": content[:-1], "longer": content + b"x", "no array": b"no array"}
        path.write_bytes(new[damage])
    assert offset_of(place, SHAPE) is None
    assert not is_sound(place, 0, SHAPE)
    assert not is_fresh(place) or damage != "gone"
