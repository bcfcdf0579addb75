"""What is known of timm's images before one is read."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.data.test_timm_sets import COLOURS, by_class, png, timm, write_fashion, write_tar
from vitnas.config.data import DataConfig
from vitnas.data.foreign import describe
from vitnas.data.rows import Rows
from vitnas.data.source import DataSource
from vitnas.data.table import read_source
from vitnas.data.timm_images import Read, known_labels, list_of
from vitnas.data.timm_sets import open_timm
from vitnas.errors import DataError


class Told(list[Any]):
    """Images with the `targets` that a data set of torchvision tells."""

    def __init__(self, targets: Any, items: Any = (0, 0, 0)) -> None:
        super().__init__(items)
        self.targets = targets


@pytest.mark.parametrize(
    "targets", [[0, 2, 1], torch.tensor([0, 2, 1]), torch.tensor([0, 2, 1], dtype=torch.uint8)]
)
def test_the_classes_that_a_data_set_tells_are_known(targets: Any) -> None:
    found = known_labels(Told(targets))
    assert found is not None
    assert found.dtype == torch.int64
    assert found.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    "targets",
    [
        None,
        7,
        [0, 1],
        [0, -1, 1],
        [0.0, 1.0, 2.0],
        [True, False, True],
        ["a", "b", "c"],
        [0, None, 1],
        [[0, 1], [1], [0]],
        torch.zeros(3, 8, dtype=torch.int64),
    ],
)
def test_what_is_no_class_of_each_image_is_not_taken_for_it(targets: Any) -> None:
    assert known_labels(Told(targets)) is None
    assert known_labels([0, 0, 0]) is None
    assert known_labels(Told([], items=())) is None


class Table(dict[str, list[Any]]):
    """A data set of `hfds/`, with columns."""

    _fingerprint = "told"

    @property
    def column_names(self) -> list[str]:
        return list(self)


class Columns:
    """A reader as timm's of `hfds/`; `opened` are the numbers of the images that were read."""

    label_key = "label"

    def __init__(self, **columns: list[Any]) -> None:
        self.dataset, self.opened = Table(columns), list[int]()

    def __len__(self) -> int:
        return 30

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        self.opened.append(number)
        return BytesIO(png((number, 0, 0))), self.dataset["label"][number]

    def filename(self, number: int) -> str:
        return f"{number}.png"


def given(reader: Columns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DataConfig:
    """Data whose training images this reader reads."""
    monkeypatch.setattr("vitnas.data.foreign.open_timm", lambda _: (Read(reader), None))
    return timm(tmp_path, dataset="hfds/some", splits=["train"])


def some(labels: torch.Tensor) -> torch.Tensor:
    """Every fifth image."""
    return torch.arange(0, len(labels), 5)


def values(source: DataSource, numbers: torch.Tensor) -> list[int]:
    """The first byte of each image."""
    found: list[int] = source.train[0][numbers][:, 0, 0, 0].tolist()
    return found


@pytest.mark.usefixtures("either_cache")
def test_of_columns_only_the_images_that_are_used_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Columns(image=[], label=[n % 3 for n in range(30)])
    config = given(reader, monkeypatch, tmp_path)
    source = read_source(config, (8, 8), some)
    assert set(reader.opened) == {0, 5, 10, 15, 20, 25}
    assert values(source, torch.tensor([5, 25])) == [5, 25]
    assert source.train[1].tolist() == [n % 3 for n in range(30)]
    assert (source.classes, source.is_whole) == (("0", "1", "2"), False)
    whole = read_source(config, (8, 8))
    assert whole.is_whole
    assert whole.fingerprint["listed"] == source.fingerprint["listed"]
    reader.opened.clear()
    monkeypatch.setattr("vitnas.data.items.cores", lambda: 1)
    assert describe(config) == (3, 3)
    assert len(reader.opened) < 10, "the classes are told without the others"


def test_of_the_classes_that_are_asked_for_only_what_is_used_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Columns(image=[], label=[n % 3 for n in range(30)])
    config = given(reader, monkeypatch, tmp_path).model_copy(update={"classes": ("0", "2")})
    source = read_source(config, (8, 8), some)
    kept = [n for n in range(30) if n % 3 != 1]
    assert set(reader.opened) == set(kept[::5])
    assert source.train[1].tolist() == [n % 3 // 2 for n in kept]
    assert values(source, torch.arange(0, 20, 5)) == kept[::5]
    assert source.fingerprint.keys() == {"num_classes", "listed"}
    whole = read_source(config, (8, 8))
    assert whole.fingerprint["listed"] == source.fingerprint["listed"]
    other = read_source(config.model_copy(update={"classes": ("0", "1")}), (8, 8), some)
    assert other.fingerprint["listed"] != source.fingerprint["listed"]


@pytest.mark.parametrize(
    "labels", [[str(n % 3) for n in range(30)], [float(n % 3) for n in range(30)]]
)
def test_columns_that_are_no_numbers_are_read_whole(
    tmp_path: Path, labels: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Columns(image=[], label=labels)
    source = read_source(given(reader, monkeypatch, tmp_path), (8, 8), some)
    assert source.is_whole
    assert source.train[1].tolist() == [n % 3 for n in range(30)]


def test_images_of_other_classes_than_was_told_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Image.new("RGB", (8, 8))
    data = Told([0, 1] * 5, [(image, 0)] * 10)
    monkeypatch.setattr("vitnas.data.foreign.open_timm", lambda _: (data, None))
    config = timm(tmp_path, dataset="torch/cifar10", splits=["train"])
    with pytest.raises(DataError) as caught:
        read_source(config, (8, 8), some)
    told = "data set timm: has images of other classes than it tells beforehand"
    assert str(caught.value) == told
    data.targets = [1] * 10
    with pytest.raises(DataError, match="has training images of 1 class, and two are needed"):
        read_source(config, (8, 8), some)


def test_the_number_in_an_error_is_that_of_the_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grey, red = Image.new("L", (8, 8)), Image.new("RGB", (8, 8))
    data = Told([0, 1] * 5, [(red if n < 5 else grey, n % 2) for n in range(10)])
    monkeypatch.setattr("vitnas.data.foreign.open_timm", lambda _: (data, None))
    config = timm(tmp_path, dataset="torch/cifar10", splits=["train"])
    with pytest.raises(DataError, match="item 5 has 1 channel, and the first one 3"):
        read_source(config, (8, 8), some)


@pytest.mark.parametrize("kind", ["tar file", "folder"])
def test_the_list_tells_names_sizes_and_classes_of_files(tmp_path: Path, kind: str) -> None:
    def told(files: dict[str, bytes], place: Path = tmp_path / "train") -> str:
        if kind == "tar file":
            place.mkdir(exist_ok=True)
            write_tar(place / "all.tar", files)
            config = timm(place / "all.tar")
        else:
            for name, content in files.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(content)
            config = timm(place)
        train, _ = open_timm(config)
        labels = known_labels(train)
        assert labels is not None
        return list_of(train, train.classes, labels)

    files = by_class(4, *COLOURS)
    first = told(files)
    assert told(files, tmp_path / "moved") == first
    assert told(files | {"red/0.png": png((9, 9, 9), 40)}) != first
    assert told(files | {"red/9.png": files["red/0.png"]}) != first


def test_a_share_of_torchvision_s_images_is_in_the_cache(tmp_path: Path) -> None:
    write_fashion(tmp_path)
    source = read_source(timm(tmp_path, dataset="torch/fashion_mnist"), (28, 28), some)
    assert isinstance(source.train[0], Rows)
    assert source.train[0].places.tolist() == [n // 5 if n % 5 == 0 else -1 for n in range(20)]


def test_images_come_in_their_order_whichever_core_decodes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large images before small ones, so that those that are decoded first are not the first."""
    files = {
        f"{'ab'[index % 2]}/{index:03}.png": png((index, 0, 0), 400 if index % 3 == 0 else 8)
        for index in range(100)
    }
    write_tar(tmp_path / "all.tar", files)
    found = []
    for number in (1, 4):
        monkeypatch.setattr("vitnas.data.items.cores", lambda number=number: number)
        found.append(read_source(timm(tmp_path / "all.tar"), (4, 4)))
    one, many = found
    assert torch.equal(one.train[0][:], many.train[0][:])
    assert one.fingerprint == many.fingerprint
    expected = [*range(0, 100, 2), *range(1, 100, 2)]
    assert many.train[0][:][:, 0, 0, 0].tolist() == expected
    assert many.train[1].tolist() == [0] * 50 + [1] * 50
