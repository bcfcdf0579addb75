"""The table of data sets: a reader for every name that is known, and one for all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitnas.config.data import DATA_FACTS, DataConfig
from vitnas.data.source import DataSource, ImageHW
from vitnas.data.table import READERS, check_there, read_source
from vitnas.errors import DataError


def test_what_can_be_read_is_known_without_reading() -> None:
    assert READERS.keys() | {"imagefolder"} == DATA_FACTS.keys()


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_name_is_read_by_its_own_reader(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ImageHW]] = []

    def read(config: DataConfig, image_hw: ImageHW) -> DataSource:
        asked.append((config.name, image_hw))
        raise LookupError

    monkeypatch.setitem(READERS, name, read)
    root = "somewhere" if name == "imagefolder" else None
    with pytest.raises(LookupError):
        read_source(DataConfig(name=name, root=root), (8, 4))
    assert asked == [(name, (8, 4))]


def test_digits_are_as_their_facts_say() -> None:
    facts, source = DATA_FACTS["digits"], read_source(DataConfig(), (8, 8))
    assert len(source.classes) == facts.num_classes
    assert source.train[0].shape[1] == facts.in_chans


def test_what_timm_opens_is_looked_for_before_anything_else(tmp_path: Path) -> None:
    """A tar file is no folder, and `hfds/` makes its own."""
    (tmp_path / "all.tar").write_bytes(b"")
    check_there(DataConfig(name="timm", root=str(tmp_path / "all.tar")))
    with pytest.raises(DataError, match=r"there is no train/ or train\.tar"):
        check_there(DataConfig(name="timm", root=str(tmp_path / "gone")))
