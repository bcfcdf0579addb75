"""The file of a table: known by its first bytes, bounded, and each value of its type."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from vitnas.errors import VitnasError
from vitnas.replay.tables import is_table, read_table, shipped_tables, write_table

SHIPPED = shipped_tables()["digits"]


def test_a_table_is_known_by_its_first_bytes() -> None:
    assert is_table(SHIPPED.read_bytes()[:4096])
    assert not is_table(b"")
    assert not is_table(b"my thesis")
    assert not is_table(gzip.compress(b"my thesis"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(bytes(65 << 20), 1), "larger than 64 MiB"),
        (SHIPPED.read_bytes()[:1000], "it is cut off"),
        (b"hello", "is not a recorded table"),
        (gzip.compress(b"[" * 200_000), "is not a recorded table"),
    ],
    ids=["bomb", "cut", "text", "deep"],
)
def test_what_is_no_table(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.json.gz").write_bytes(content)
    with pytest.raises(VitnasError, match=rf"t\.json\.gz: .*{message}"):
        read_table(tmp_path / "t.json.gz")


def test_a_table_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(VitnasError, match=r"t\.json\.gz: cannot be written: "):
        write_table(read_table(SHIPPED), tmp_path / "file" / "t.json.gz")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("curve", ["x"]),
        ("curve", None),
        ("curve", [float("nan")]),
        ("curve", [-5.0]),
        ("outcome", "stolen"),
        ("outcome", [1]),
        ("seconds", "x"),
        ("seconds", float("inf")),
        ("flops", "x"),
        ("config", [1]),
    ],
)
def test_a_value_of_another_type(tmp_path: Path, key: str, value: Any) -> None:
    tree = json.loads(gzip.decompress(SHIPPED.read_bytes()))
    tree["networks"][0][key] = value
    file = tmp_path / "t.json.gz"
    file.write_bytes(gzip.compress(json.dumps(tree).encode(), 1))
    with pytest.raises(VitnasError, match=rf"t\.json\.gz: networks\[0\]: {key}"):
        read_table(file)
