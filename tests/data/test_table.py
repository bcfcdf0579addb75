"""The table of data sets: a reader for every name that is known, and one for all others."""

from __future__ import annotations

import pytest

from vitnas.config.data import DATA_FACTS, DataConfig
from vitnas.data.source import DataSource, ImageHW
from vitnas.data.table import READERS, read_source


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
