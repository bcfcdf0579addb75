"""Images of tensorflow_datasets that timm reads, which its own builder has written."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.data.test_timm_sets import COLOURS, check_reads_upright, odd, png, said, timm
from vitnas.config.data import DataConfig
from vitnas.data.cache import held_sets, home
from vitnas.data.foreign import describe
from vitnas.data.rows import Rows
from vitnas.data.table import read_source

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("tensorflow_datasets") is None, reason="needs tensorflow_datasets"
    ),
]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What tensorflow_datasets asks its server for; it gets nothing."""
    import_module("timm.data")  # loads triton: after TensorFlow that would end the process
    names: list[str] = []
    server: Any = import_module("tensorflow_datasets.core.utils.gcs_utils")
    monkeypatch.setattr(server, "gcs_dataset_info_files", names.append)
    return names


def write_colours(root: Path, torn: int = -1, number: int = 15, content: bytes = b"") -> Path:
    """The data set `colours` of `number` training and 6 test images, as tensorflow_datasets
    prepares it; the folder of its files. The `torn` training image is no image; all are `content`,
    where it is given."""
    tfds: Any = import_module("tensorflow_datasets")
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(None, None, 3)),
            "label": tfds.features.ClassLabel(names=list(COLOURS)),
            "half": tfds.features.ClassLabel(names=["first", "second"]),
        }
    )

    def info(self: Any) -> Any:
        return tfds.core.DatasetInfo(builder=self, features=features)

    def examples(self: Any, number: int, torn: int = -1) -> Iterator[Any]:
        for index in range(number):
            name = list(COLOURS)[index % 3]
            image = io.BytesIO(b"no image" if index == torn else content or png(COLOURS[name]))
            yield index, {"image": image, "label": name, "half": 2 * index // number}

    def splits(self: Any, downloads: Any) -> Any:
        return {"train": examples(self, number, torn), "test": examples(self, 6)}

    facts: dict[str, Any] = {
        "VERSION": tfds.core.Version("1.0.0"),
        "_info": info,
        "_generate_examples": examples,
        "_split_generators": splits,
    }
    with tfds.core.registered.skip_registration():  # only the files tell of it
        builder = type("Colours", (tfds.core.GeneratorBasedBuilder,), facts)(data_dir=root)
        builder.download_and_prepare()
    return Path(builder.data_dir)


def colours(root: Path | None, **changes: Any) -> DataConfig:
    return timm(root, **{"dataset": "tfds/colours", "splits": ["train", "test"], **changes})


@pytest.mark.usefixtures("either_cache")
def test_images_and_names_of_classes(tmp_path: Path) -> None:
    write_colours(tmp_path)
    source = read_source(colours(tmp_path), (8, 8))
    assert source.test is not None
    assert (source.classes, source.skipped) == (("blue", "green", "red"), ())
    for (images, labels), number in ((source.train, 5), (source.test, 2)):
        assert sorted(labels.tolist()) == [0] * number + [1] * number + [2] * number
        for pixels, label in zip(images[:], labels.tolist(), strict=True):
            assert pixels[:, 0, 0].tolist() == list(list(COLOURS.values())[label])
    assert describe(colours(tmp_path)) == (3, 3)
    some = read_source(colours(tmp_path, classes=["red", "blue"]), (8, 8))
    assert some.classes == ("blue", "red")
    assert sorted(some.train[1].tolist()) == [0] * 5 + [1] * 5
    halves = read_source(colours(tmp_path, target_key="half", splits=["train[:10]"]), (8, 8))
    assert (halves.classes, len(halves.train[1])) == (("first", "second"), 10)
    assert halves.test is None


def test_a_second_start_reads_the_cache_until_a_file_changes(tmp_path: Path) -> None:
    folder = write_colours(tmp_path)
    number_of_sets = []
    for change in ("none", "none", "a file"):
        if change == "a file":
            (folder / "label.labels.txt").touch()
        assert isinstance(read_source(colours(tmp_path), (8, 8)).train[0], Rows), "kept"
        number_of_sets.append(len(held_sets(home())))
    assert number_of_sets == [2, 2, 4]


def test_a_broken_image_is_named_and_skipped(tmp_path: Path) -> None:
    write_colours(tmp_path, torn=7, number=150)
    for _ in range(2):
        source = read_source(colours(tmp_path), (8, 8))
        (line,) = source.skipped
        assert re.match(r"timm data set tfds/colours: item \d+: not a readable image", line)
        assert "Unknown image file format" in line
        assert len(source.train[1]) == 149


@pytest.mark.parametrize("kind", ["grey", "deep", "turned"])
def test_images_are_read_as_those_of_folders(tmp_path: Path, kind: str) -> None:
    write_colours(tmp_path, number=40, content=odd(kind))
    check_reads_upright(colours(tmp_path), kind)


def test_more_than_one_in_a_hundred_are_an_error(tmp_path: Path) -> None:
    write_colours(tmp_path, torn=7)
    assert said(colours(tmp_path)).endswith("1 of 15 images cannot be read, more than 1%")


def test_a_split_or_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_colours(tmp_path)
    why = "cannot be opened: ValueError: Unknown split 'tset'. Should be one of ['train', 'test']."
    message = said(colours(tmp_path, splits=["train", "tset"]))
    assert message == f"timm data set tfds/colours: split tset: {why}"
    assert "KeyError: 'nope'" in said(colours(tmp_path, target_key="nope"))
    assert "Unrecognized keys: ['nope']" in said(colours(tmp_path, input_key="nope"))


@pytest.mark.parametrize("name", ["tfds/colour", "tfds/colours:2.0.0", "tfds/mnist"])
def test_data_that_are_not_prepared_are_not_downloaded(
    tmp_path: Path, name: str, asked: list[str]
) -> None:
    write_colours(tmp_path)
    asked.clear()
    there = sorted(tmp_path.rglob("*"))
    message = said(colours(tmp_path, dataset=name))
    assert message == f"timm data set {name}: tensorflow_datasets has not prepared it in {tmp_path}"
    assert sorted(tmp_path.rglob("*")) == there
    assert asked == (["mnist/3.0.1"] if name == "tfds/mnist" else [])


def test_what_a_server_tells_of_data_is_not_taken_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_colours(tmp_path / "server")
    facts = folder / "dataset_info.json"
    facts.write_text(facts.read_text().replace('"1.0.0"', '"3.0.1"'))
    server: Any = import_module("tensorflow_datasets.core.utils.gcs_utils")
    monkeypatch.setattr(server, "gcs_dataset_info_files", lambda name: list(folder.glob("*.json")))
    message = said(colours(tmp_path / "data", dataset="tfds/mnist"))
    assert message.endswith(f"tensorflow_datasets has not prepared it in {tmp_path / 'data'}")
