"""Images that come one after the other as files: broken ones do not end the reading."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.data.test_timm_sets import COLOURS, HUB_CARD, check_reads_upright, odd, png, said, timm
from vitnas.data.decode import BrokenImage
from vitnas.data.table import read_source
from vitnas.data.timm_streams import UNDECODED, Stream, Undecoded, _each_leaf


class Reader:
    """Gives files, of which number 2 is broken."""

    def __init__(self, number: int = 5) -> None:
        self.number, self.starts = number, 0

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        self.starts += 1
        for index in range(self.number):
            file = BytesIO()
            Image.new("RGB", (2, 2), (index, 0, 0)).save(file, "PNG")
            yield b"no image" if index == 2 else file.getvalue(), index

    def __len__(self) -> int:
        return self.number


class Data(Reader):
    classes = ("a", "b")

    @property
    def reader(self) -> Reader:
        return self


def decoded(pair: tuple[bytes, int]) -> tuple[Image.Image, int]:
    return Image.open(BytesIO(pair[0])).convert("RGB"), pair[1]


def files_of(reader: Any, **changes: Any) -> Undecoded:
    return Undecoded(reader, decoded, lambda pair: pair[0])._replace(**changes)


def stream(data: Data, undecoded: Any) -> Stream:
    return Stream(data, "the data", undecoded)


@pytest.mark.parametrize("number", [0, 5, 50])
def test_a_broken_image_is_named_in_its_place(number: int) -> None:
    data = Data(number)
    found = stream(data, files_of)
    for start in (1, 2):
        each = list(found)
        assert len(each) == len(found) == number
        assert data.starts == start
        for index, item in enumerate(each):
            if isinstance(item, BrokenImage):
                assert index == 2
                assert str(item).startswith("the data: item 2: not a readable image (cannot ident")
            else:
                image, label = item
                assert (image.getpixel((0, 0)), label) == ((index, 0, 0), index)
    assert found.classes == ("a", "b")


def test_the_first_ones_are_told_as_they_are() -> None:
    class Grey(Data):
        def __iter__(self) -> Iterator[tuple[bytes, int]]:
            for index, (content, label) in enumerate(super().__iter__()):
                file = BytesIO()
                Image.new("L", (2, 2)).save(file, "PNG")
                yield (file.getvalue() if index % 2 else content), label

    found = stream(Grey(50), files_of)
    for _ in range(2):
        assert len(list(found)) == 50
        assert found.kinds == [(), ("grey",)] * 16
    unknown = stream(Grey(3), lambda reader: files_of(reader, file=lambda pair: None))
    assert len(list(unknown)) == 3
    assert unknown.kinds == [()] * 3


def test_what_the_data_leave_out_is_no_broken_image() -> None:
    def some(pair: tuple[bytes, int]) -> Any:
        return None if pair[1] % 2 else decoded(pair)

    def named(pair: tuple[bytes, int]) -> str:
        return f"x.tar: {pair[1]}"

    each: list[Any] = list(stream(Data(), lambda r: files_of(r, decode=some, name=named)))
    first, broken, last = each
    assert (first[1], last[1]) == (0, 4)
    assert str(broken).startswith("the data: x.tar: 2: not a readable image (cannot identify")


def test_what_is_no_fault_of_an_image_is_raised() -> None:
    def wrong(pair: tuple[bytes, int]) -> Any:
        raise KeyError("no such column")

    each = stream(Data(), lambda reader: files_of(reader, decode=wrong, mistakes=(KeyError,)))
    with pytest.raises(KeyError, match="no such column"):
        list(each)


def test_what_says_no_images_is_read_as_it_is() -> None:
    data = Data()
    assert list(stream(data, lambda reader: None)) == list(data)


def test_the_reader_is_changed_once() -> None:
    seen = list[Any]()

    def undecoded(reader: Any) -> Undecoded:
        seen.append(reader)
        return files_of(reader)

    found = stream(Data(), undecoded)
    assert [len(list(found)), len(list(found)), len(seen)] == [5, 5, 1]


def test_the_readers_that_give_files() -> None:
    assert set(UNDECODED) == {"hfids", "tfds", "wds"}  # tested where the packages are
    assert _each_leaf({"a": 1, "b": {"c": 2}}, 0) == {"a": 0, "b": {"c": 0}}
    assert _each_leaf(1, 0) == 0


@pytest.mark.skipif(find_spec("datasets") is None, reason="needs datasets")
@pytest.mark.parametrize("torn", [1, 3])
@pytest.mark.usefixtures("either_cache")
def test_a_broken_image_of_datasets_is_skipped_and_many_are_refused(
    tmp_path: Path, torn: int
) -> None:
    pyarrow, parquet = map(import_module, ("pyarrow", "pyarrow.parquet"))
    root = tmp_path / "colours"
    root.mkdir()
    names = list(COLOURS)
    for split, number, broken in (("train", 150, torn), ("test", 6, 0)):
        files = [png(COLOURS[names[n % 3]]) for n in range(number)]
        files[7 : 7 + broken] = [b"no image"] * broken
        rows = [
            {"image": {"bytes": file, "path": None}, "label": n % 3} for n, file in enumerate(files)
        ]
        table = pyarrow.Table.from_pylist(rows)
        parquet.write_table(table, root / f"{split}-00000-of-00001.parquet")
    card = HUB_CARD.replace("num_examples: 12", "num_examples: 150")
    (root / "README.md").write_text(card)
    config = timm(tmp_path / "theirs", dataset=f"hfids/{root}", splits=["train", "test"])
    first = f"timm data set hfids{root}: item 7: not a readable image (cannot identify image file)"
    if torn > 1:
        message = said(config)
        assert message.startswith(first)
        assert message.endswith("3 of 150 images cannot be read, more than 1%")
        return
    for _ in range(2):
        source = read_source(config, (8, 8))
        assert len(source.skipped) == 1
        assert source.skipped[0].startswith(first)
        assert source.train[1].tolist() == [n % 3 for n in range(150) if n != 7]


@pytest.mark.skipif(find_spec("datasets") is None, reason="needs datasets")
@pytest.mark.parametrize("kind", ["grey", "deep", "turned"])
def test_images_of_datasets_are_read_as_those_of_folders(tmp_path: Path, kind: str) -> None:
    pyarrow, parquet = map(import_module, ("pyarrow", "pyarrow.parquet"))
    root = tmp_path / "colours"
    root.mkdir()
    rows = [{"image": {"bytes": odd(kind), "path": None}, "label": n % 3} for n in range(40)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), root / "train-00000-of-00001.parquet")
    card = HUB_CARD.replace("num_examples: 12", "num_examples: 40").splitlines(keepends=True)
    (root / "README.md").write_text("".join(line for line in card if "test" not in line))
    config = timm(tmp_path / "theirs", dataset=f"hfids/{root}", splits=["train"])
    check_reads_upright(config, kind)
