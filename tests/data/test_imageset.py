"""What a set of decoded images is named by, how it is cut into shards, and who may delete it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.data.sets import complete, image_files, listed, small_set
from vitnas.data.imageset import ImageSet, SetFacts, set_of


def test_the_name_is_of_all_that_pixels_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data"
    files = image_files(root, 4)
    first = set_of(tmp_path, root, files, (4, 4)).folder.name
    assert set_of(tmp_path, root, files, (4, 4)).folder.name == first
    names = {first, *(set_of(tmp_path, root, files, hw).folder.name for hw in ((4, 5), (5, 4)))}
    names.add(set_of(tmp_path, root, files[:3], (4, 4)).folder.name)
    os.utime(files[1].path, ns=(0, 1))
    changed = [listed(Path(file.path)) for file in files]
    names.add(set_of(tmp_path, root, changed, (4, 4)).folder.name)
    Path(files[2].path).write_bytes(b"more")
    longer = [file._replace(size=file.size + 1) for file in files]
    names.add(set_of(tmp_path, root, longer, (4, 4)).folder.name)
    renamed = [files[0]._replace(path=files[0].path + "x"), *files[1:]]
    names.add(set_of(tmp_path, root, renamed, (4, 4)).folder.name)
    monkeypatch.setattr("PIL.__version__", "0.0")
    names.add(set_of(tmp_path, root, files, (4, 4)).folder.name)
    assert len(names) == 8


def test_a_link_to_the_folder_has_the_same_set(tmp_path: Path) -> None:
    files = image_files(tmp_path / "data", 2)
    (tmp_path / "link").symlink_to("data")
    through = [listed(tmp_path / "link" / Path(file.path).name) for file in files]
    one = set_of(tmp_path, tmp_path / "data", files, (4, 4))
    assert set_of(tmp_path, tmp_path / "link", through, (4, 4)) == one


def test_other_classes_of_the_same_files_have_the_same_set(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    others = [file._replace(number=3) for file in files]
    assert set_of(tmp_path / "home", tmp_path / "data", others, (4, 4)) == images


@pytest.mark.parametrize(
    ("number", "side", "per_shard"),
    [(5, 8, 64), (10_000, 32, 79), (200_000, 32, 1563), (9_000_000, 32, 4096), (10**6, 224, 445)],
)
def test_shards_are_neither_many_nor_large(number: int, side: int, per_shard: int) -> None:
    facts = SetFacts(root="/", image_hw=(side, side), number=number)
    images = ImageSet(Path("set"), facts)
    assert images.per_shard == per_shard
    spans = [images.span(shard) for shard in (0, images.num_shards - 1)]
    assert spans[0] == range(min(per_shard, number))
    assert spans[1].stop == number
    assert images.shape(images.num_shards - 1) == (len(spans[1]), 3, side, side)
    assert 0 < len(spans[1]) <= per_shard


def test_a_set_is_deleted_when_nobody_uses_it(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    assert not images.delete()
    complete(images, files)
    held = images.hold()
    assert not images.delete()
    assert images.place(0).with_suffix(".npy").exists()
    os.close(held)
    with images.lock():
        assert not images.delete()
    assert images.delete()
    assert not images.folder.exists()


def test_files_of_others_in_a_set_s_folder_stay(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    complete(images, files)
    (images.folder / "notes.txt").write_text("mine")
    assert images.delete()
    assert [path.name for path in images.folder.iterdir()] == ["notes.txt"]


def test_noting_a_use_keeps_the_file_that_users_hold(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    complete(images, files)
    facts = images.folder / "set.json"
    os.utime(facts, (1, 1))
    before = facts.stat()
    images.note_use()
    assert facts.stat().st_ino == before.st_ino
    assert facts.stat().st_mtime > before.st_mtime
    assert SetFacts.model_validate_json(facts.read_bytes()) == images.facts


def test_what_is_half_written_is_cleaned(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    complete(images, files)
    (images.folder / ".vitnas.0011.tmp").write_bytes(b"half")
    images.clean()
    assert sorted(path.name for path in images.folder.iterdir()) == [
        "00000.npy",
        "00000.npz",
        "set.json",
    ]
