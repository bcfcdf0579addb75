"""Data sets of other packages: read as ours are, and one line for whatever is wrong with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils.data import IterableDataset, Subset

from vitnas.config.data import DataConfig
from vitnas.config.data_names import read_data
from vitnas.data.foreign import describe
from vitnas.data.source import DataSource
from vitnas.data.table import read_source
from vitnas.errors import DataError, MemoryLimitError
from vitnas.training.plan import make_plan


class Stripes(list[tuple[Any, int]]):  # a list of (image, label) is a map-style data set
    classes = ("across", "down")


def stripes(number: int, make: Callable[[torch.Tensor], Any] = lambda image: image) -> Stripes:
    image = torch.zeros(1, 8, 8, dtype=torch.uint8)
    image[:, ::2] = 200
    return Stripes(
        (make(image if label == 0 else image.mT), label) for label in [0, 1] * (number // 2)
    )


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module `stripes_package` whose `my_data` gives what a test puts there."""
    module = ModuleType("stripes_package")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def read(given: Any, train: Any, test: Any = None, side: int = 8) -> DataSource:
    given.my_data = lambda: (train, test)
    return read_source(DataConfig(name="stripes_package:my_data"), (side, side))


def test_images_labels_and_class_names_arrive(given: Any) -> None:
    source = read(given, stripes(10), stripes(4))
    assert source.test is not None
    assert source.classes == ("across", "down")
    assert source.train[0].shape == (10, 1, 8, 8)
    assert source.train[1].tolist() == [0, 1] * 5
    assert source.train[0][:][0, 0, :2, 0].tolist() == [200, 0]
    assert len(source.test[1]) == 4


def test_a_part_of_a_data_set_has_its_class_names(given: Any) -> None:
    """As `random_split` and `Subset` of torch give them."""
    whole: Any = stripes(10)
    train: Any
    train, test = Subset(whole, range(8)), Subset(whole, range(8, 10))
    for part in (train, Subset(train, range(4))):
        assert read(given, part, test).classes == ("across", "down")
    train.classes = ("flat", "steep")
    assert read(given, train, test).classes == ("flat", "steep")


def test_more_images_than_memory_are_refused_before_most_are_read(given: Any) -> None:
    class Many(Stripes):
        def __len__(self) -> int:
            return 10**12

    with pytest.raises(MemoryLimitError, match="1,000,000,000,000 images"):
        read(given, Many(stripes(2)))


def test_images_that_can_only_be_read_in_turn(given: Any) -> None:
    class InTurn(IterableDataset[Any]):
        def __len__(self) -> int:
            return 7  # what it says of its length is not taken for true

        def __iter__(self) -> Iterator[Any]:
            return iter(stripes(2000))

    source = read(given, InTurn())
    assert source.train[1].tolist() == [0, 1] * 1000
    assert torch.equal(source.train[0][:], read(given, stripes(2000)).train[0][:])


def to_pil(image: torch.Tensor) -> Image.Image:
    return Image.fromarray(image[0].numpy())


@pytest.mark.parametrize(
    "make",
    [to_pil, lambda image: image / 255, lambda image: image[0]],
    ids=["PIL", "floats", "no channel"],
)
def test_every_kind_of_image_gives_the_same_bytes(given: Any, make: Any) -> None:
    plain, other = read(given, stripes(4)), read(given, stripes(4, make))
    assert torch.equal(plain.train[0][:], other.train[0][:])
    assert plain.fingerprint == other.fingerprint


def test_colour_is_kept_and_the_size_changed(given: Any) -> None:
    red = Image.new("RGB", (9, 5), (255, 0, 0))
    source = read(given, [(red, 0), (red, 1)], side=4)
    assert source.train[0].shape == (2, 3, 4, 4)
    assert source.train[0][:][0, :, 0, 0].tolist() == [255, 0, 0]
    assert source.classes == ("0", "1")
    assert source.test is None


def test_the_fingerprint_is_of_the_pixels(given: Any) -> None:
    first = read(given, stripes(4)).fingerprint
    changed = stripes(4)
    changed[3] = (changed[3][0] + 1, 1)
    assert read(given, changed).fingerprint["digest"] != first["digest"]


def test_the_fingerprint_is_also_of_test_images_that_score(given: Any) -> None:
    config = DataConfig(name="stripes_package:my_data", val_split="test")
    plain, found = dict(read(given, stripes(4), stripes(2)).fingerprint), []
    digest = plain.pop("test")
    for test in (stripes(2), stripes(4)):
        given.my_data = lambda test=test: (stripes(4), test)
        found.append(read_source(config, (8, 8)).fingerprint)
        assert {**plain, "scoring": found[-1]["scoring"]} == found[-1]
    assert found[0]["scoring"] == digest
    assert found[0] != found[1]


def test_a_root_reaches_the_function(given: Any, tmp_path: Path) -> None:
    seen: list[Path] = []

    def my_data(root: Path) -> tuple[Stripes, None]:
        seen.append(root)
        return stripes(2), None

    given.my_data = my_data
    read_source(DataConfig(name="stripes_package:my_data", root=str(tmp_path)), (8, 8))
    assert seen == [tmp_path]


@pytest.mark.parametrize("classes", [("across",), ("across", "down"), ()])
def test_images_of_one_class_are_refused(given: Any, classes: tuple[str, ...]) -> None:
    train = Stripes(item for item in stripes(8) if item[1] == 0)
    train.classes = classes  # type: ignore[assignment]
    with pytest.raises(DataError) as caught:
        read(given, train)
    rule = "has training images of 1 class, and two are needed"
    assert str(caught.value) == f"data set stripes_package:my_data: {rule}"


class Torn(Stripes):
    def __getitem__(self, index: Any) -> Any:
        if index == 3:
            raise OSError("disk\ngone")
        return super().__getitem__(index)


MISTAKES: list[tuple[Any, str]] = [
    (lambda: 1 / 0, "its function fails: ZeroDivisionError: division by zero"),
    (
        lambda root: (stripes(2), None),
        "its function fails: TypeError: .* 1 required positional argument: 'root'",
    ),
    (lambda: 7, r"must give \(train, test\).*TypeError"),
    (lambda: ([], None), "gives a data set without images"),
    (lambda: (iter([]), None), r"must give \(train, test\), data sets with a length: TypeError"),
    (lambda: (Torn(stripes(6)), None), "item 3 cannot be read: OSError: disk gone"),
    (lambda: ([(7, 0)], None), "item 0 cannot be read: TypeError: an image is a tensor or a PIL"),
    (lambda: (stripes(2, lambda x: x - 0.5), None), "floats are from 0 to 1, not normalised"),
    (lambda: (stripes(2, lambda x: x.int()), None), "pixels are uint8 or floats"),
    (lambda: (stripes(2, lambda x: x[None]), None), r"has the shape \(C, H, W\), and this one"),
    (lambda: ([*stripes(2), (torch.zeros(3, 8, 8), 0)], None), "item 2 has 3 channels"),
    (lambda: (Stripes([(torch.zeros(1, 8, 8), 2)]), None), "label 2 where the largest is 1"),
    (lambda: (stripes(2), Stripes([(torch.zeros(1, 8, 8), 5)])), "label 5 where the largest is 1"),
    (lambda: ([(torch.zeros(1, 8, 8), -1)], None), "item 0 has the label -1"),
    (
        lambda: (stripes(4), stripes(4, lambda x: x.repeat(3, 1, 1))),
        "has test images with 3 channels, and training images with 1",
    ),
]


@pytest.mark.parametrize(("function", "message"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_a_mistake_is_one_line(given: Any, function: Any, message: str) -> None:
    given.my_data = function
    with pytest.raises(DataError, match=message) as caught:
        read_source(DataConfig(name="stripes_package:my_data"), (8, 8))
    assert str(caught.value).startswith("data set stripes_package:my_data: ")
    assert "\n" not in str(caught.value)


def test_a_model_of_the_zoo_gets_its_classes_and_channels(given: Any) -> None:
    given.my_data = lambda: (stripes(4), None)
    data = read_data("stripes_package:my_data")
    config = make_plan("sret_t", data, img_size=32).config
    assert (config.num_classes, config.in_chans) == (2, 1)
    given.my_data = lambda: (list(stripes(4)), None)  # without names
    assert describe(data) == (2, 1)
