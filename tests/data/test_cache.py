"""Where the sets are, which ones are there, and which go when there is too little room."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.data.sets import complete, small_set
from vitnas.data.cache import held_sets, home, make_room, size_text
from vitnas.data.imageset import ImageSet
from vitnas.errors import DataError


def test_it_is_in_the_user_s_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert home() == tmp_path / "vitnas" / "images"
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", str(tmp_path / "large"))
    assert home() == tmp_path / "large"
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
    assert home() is None


def test_a_place_that_is_relative_to_something_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "images")
    with pytest.raises(DataError, match=r"\$VITNAS_IMAGE_CACHE = 'images': must be off or"):
        home()


@pytest.fixture
def three(tmp_path: Path) -> list[ImageSet]:
    """Three sets, of which the first was used last."""
    found = []
    for number in range(3):
        images, files = small_set(tmp_path, 5 + number)
        complete(images, files)
        os.utime(images.folder / "set.json", (100 - number, 100 - number))
        found.append(images)
    return found


def test_sets_are_listed_by_their_use(three: list[ImageSet], tmp_path: Path) -> None:
    (tmp_path / "home" / "something else").mkdir()
    damaged = tmp_path / "home" / ("0" * 16)
    damaged.mkdir()
    (damaged / "set.json").write_text("{")
    found = held_sets(tmp_path / "home")
    assert [held.images for held in found] == three
    assert [held.used for held in found] == [100, 99, 98]
    assert found[0].images.facts.number == 5
    sizes = [path.stat().st_size for path in three[0].folder.iterdir()]
    assert found[0].size == sum(sizes)


def test_no_sets_are_listed_where_there_is_no_folder(tmp_path: Path) -> None:
    assert held_sets(tmp_path / "nowhere") == held_sets(None) == []


def test_the_set_that_was_not_used_for_longest_goes_first(
    three: list[ImageSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = sum(held.size for held in held_sets(tmp_path / "home"))
    monkeypatch.setenv("VITNAS_IMAGE_CACHE_LIMIT", str(total))
    other = ImageSet(tmp_path / "home" / ("f" * 16), three[0].facts)
    make_room(tmp_path / "home", 0, other)
    assert len(held_sets(tmp_path / "home")) == 3
    make_room(tmp_path / "home", 100, other)
    assert [held.images for held in held_sets(tmp_path / "home")] == three[:2]


def test_a_set_that_is_used_or_being_made_does_not_go(
    three: list[ImageSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = sum(held.size for held in held_sets(tmp_path / "home"))
    monkeypatch.setenv("VITNAS_IMAGE_CACHE_LIMIT", str(total))
    descriptor = three[2].hold()
    make_room(tmp_path / "home", 100, three[1])
    assert [held.images for held in held_sets(tmp_path / "home")] == three[1:]
    with pytest.raises(DataError, match=r"take 1e\+03 MB, more than") as caught:
        make_room(tmp_path / "home", 10**9 - 1, three[1])
    os.close(descriptor)
    assert str(caught.value).startswith(str(tmp_path / "home"))


def test_more_than_the_disk_has_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, _ = small_set(tmp_path)
    with pytest.raises(DataError, match=r"take 1e\+06 TB and .* are free; take a smaller img_size"):
        make_room(tmp_path / "home", 10**18, images)


def test_a_limit_that_is_no_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, _ = small_set(tmp_path)
    monkeypatch.setenv("VITNAS_IMAGE_CACHE_LIMIT", "much")
    with pytest.raises(DataError, match=r"\$VITNAS_IMAGE_CACHE_LIMIT = 'much': a size is"):
        make_room(tmp_path / "home", 1, images)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 kB"), (1234, "1.23 kB"), (2e7, "20 MB"), (3.75e11, "375 GB")]
)
def test_sizes_are_told_in_three_digits(size: float, text: str) -> None:
    assert size_text(size) == text
