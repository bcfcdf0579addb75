"""Shards of webdataset, which timm opens as `wds/`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.data.test_timm_sets import COLOURS, odd, png, said, timm, write_tar
from vitnas.data.foreign import describe
from vitnas.data.rows import Rows
from vitnas.data.table import read_source
from vitnas.data.telling import Teller

pytestmark = pytest.mark.skipif(find_spec("webdataset") is None, reason="needs webdataset")


def write_shards(root: Path, labels: list[int], split: str) -> dict[str, Any]:
    """Two shards of webdataset's layout: `<key>.png` and `<key>.cls`; their entry in the info."""
    names, lengths = [], []
    for number, part in enumerate((labels[::2], labels[1::2])):
        files: dict[str, bytes] = {}
        for index, label in enumerate(part):
            files[f"{number}-{index:04}.png"] = png(list(COLOURS.values())[label])
            files[f"{number}-{index:04}.cls"] = str(label).encode()
        names.append(f"x-{split}-{number:04}.tar")
        lengths.append(len(part))
        write_tar(root / names[-1], files)
    return {
        "name": split,
        "filenames": names,
        "shard_lengths": lengths,
        "num_samples": len(labels),
    }


def test_shards_of_webdataset(tmp_path: Path) -> None:
    wanted = {"train": [0, 1, 2] * 5, "validation": [2, 1]}
    info = {name: write_shards(tmp_path, labels, name) for name, labels in wanted.items()}
    (tmp_path / "_info.json").write_text(json.dumps({"splits": info}))
    config = timm(tmp_path, dataset="wds/")
    source = read_source(config, (8, 8))
    assert source.test is not None
    assert source.classes == ("0", "1", "2")
    assert source.train[1].tolist() == wanted["train"][::2] + wanted["train"][1::2]
    for pixels, label in zip(source.train[0][:], source.train[1].tolist(), strict=True):
        assert pixels[:, 0, 0].tolist() == list(list(COLOURS.values())[label])
    assert source.test[1].tolist() == [2, 1]
    assert isinstance(source.train[0], Rows), "kept"
    assert describe(config) == (3, 3)
    assert "split tset not found" in said(timm(tmp_path, dataset="wds/", splits=["train", "tset"]))


def tear(path: Path) -> None:
    """The first image of an archive that is whole is no image any more."""
    content = path.read_bytes()
    begin = content.index(b"\x89PNG")
    path.write_bytes(content[:begin] + b"nothing!" + content[begin + 8 :])


@pytest.mark.usefixtures("either_cache")
def test_broken_images_of_webdataset_are_named(tmp_path: Path) -> None:
    info = write_shards(tmp_path, [0, 1] * 60, "train")
    (tmp_path / "_info.json").write_text(json.dumps({"splits": {"train": info}}))
    config = timm(tmp_path, dataset="wds/", splits=["train"])
    assert read_source(config, (8, 8)).skipped == ()
    tear(tmp_path / info["filenames"][0])
    for _ in range(2):
        source = read_source(config, (8, 8))
        assert source.skipped == (
            "timm data set wds/: x-train-0000.tar: 0-0000: not a readable image (its format is not "
            "known)",
        )
        assert len(source.train[1]) == 119
    tear(tmp_path / info["filenames"][0])
    message = said(config)
    assert "x-train-0000.tar: 0-0001: not a readable image" in message
    assert message.endswith("2 of 120 images cannot be read, more than 1%")


def test_images_that_do_not_come_are_counted(tmp_path: Path) -> None:
    """The reader ends an archive at the first member that it cannot read."""
    info = write_shards(tmp_path, [0, 1] * 60, "train")
    info["num_samples"] = 121
    (tmp_path / "_info.json").write_text(json.dumps({"splits": {"train": info}}))
    source = read_source(timm(tmp_path, dataset="wds/", splits=["train"]), (8, 8))
    assert source.skipped == ("timm data set wds/: an image that its reader leaves out",)


def test_images_of_webdataset_are_read_as_those_of_folders(tmp_path: Path) -> None:
    info = write_shards(tmp_path, [0, 1] * 20, "train")
    parts = [odd("grey"), odd("deep"), odd("turned"), png((0, 0, 255))] * 5
    for number, name in enumerate(info["filenames"]):
        files = {f"{n}.png": file for n, file in enumerate(parts)}
        files |= {f"{n}.cls": str(number).encode() for n in range(len(parts))}
        write_tar(tmp_path / name, dict(sorted(files.items())))
    (tmp_path / "_info.json").write_text(json.dumps({"splits": {"train": info}}))
    config, notices = timm(tmp_path, dataset="wds/", splits=["train"]), list[str]()
    source = read_source(config, (8, 12), teller=Teller(notices.append))
    (line,) = [line for line in notices if line.endswith("all are read upright, in RGB of 8 bits")]
    assert "of 32 images that were looked at" in line
    for kind in ("are grey", "are grey of 16 bits", "are turned by EXIF"):
        assert kind in line
    places = sorted(map(str, range(20)))  # of an image in its archive
    grey, deep, turned = (source.train[0][:][places.index(name)] for name in "012")
    for pixels in (grey, deep):
        assert pixels[:, 4, 2].tolist() == [0, 0, 0]
        assert pixels[:, 4, 9].tolist() == [255, 255, 255]
    assert turned[:, 0, 6].tolist() == [0, 0, 0]
    assert turned[:, 7, 6].tolist() == [255, 255, 255]


def test_a_class_that_is_told_in_json_may_leave_images_out(tmp_path: Path) -> None:
    info = write_shards(tmp_path, [0, 1], "train")
    files: dict[str, bytes] = {}
    for number, label in enumerate([0, 1, -1, 1, 0]):
        files[f"{number}.jpg"] = png((0, 0, 255))
        files[f"{number}.json"] = json.dumps({"kind": label}).encode()
    for name in info["filenames"]:
        write_tar(tmp_path / name, files)
    info["num_samples"] = 10
    (tmp_path / "_info.json").write_text(json.dumps({"splits": {"train": info}}))
    config = timm(tmp_path, dataset="wds/", splits=["train"], target_key="kind")
    source = read_source(config, (8, 8))
    assert source.train[1].tolist() == [0, 1, 1, 0] * 2
    assert source.skipped == ()
    wrong = said(timm(tmp_path, dataset="wds/", splits=["train"], target_key="sort"))
    assert "'sort'] not found in the json sidecar of sample '0', available keys: ['kind']" in wrong
