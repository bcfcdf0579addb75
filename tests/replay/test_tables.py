"""Recorded tables: their files are known, bounded and typed; their FLOPs are those of today."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.replay.made_up import TABLE, repeated
from tests.report.runs import run_of, trial
from vitnas.cost.closed_form import closed_form
from vitnas.errors import RunError, VitnasError
from vitnas.records import Outcome
from vitnas.replay.table import Table
from vitnas.replay.tables import (
    find_table,
    is_table,
    read_table,
    shipped_tables,
    table_of,
    write_table,
)
from vitnas.run import Run

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


@pytest.mark.parametrize("table", [TABLE, repeated(TABLE, (1.0, -1.0))])
def test_a_table_survives_its_file(tmp_path: Path, table: Table) -> None:
    file, again = tmp_path / "t.json.gz", tmp_path / "again.json.gz"
    write_table(table, file)
    read = read_table(file)
    assert read.networks == table.networks
    write_table(read, again)
    assert again.read_bytes() == file.read_bytes()


def _run_of(*outcomes: Outcome, seconds: float = 12.5) -> Run:
    """A run of the first networks of the table, which ended so."""
    trials = [
        trial(
            number,
            config=known.config.to_tree(),
            flops=known.proposal.flops,
            curve=known.trainings[0].curve,
            outcome=outcome,
            seconds=seconds,
        )
        for number, (known, outcome) in enumerate(zip(TABLE.networks, outcomes, strict=False))
    ]
    return run_of(Path("results/small"), *trials, space=TABLE.space.to_tree())


def test_a_short_training_keeps_its_time() -> None:
    """In tenths of a second, all trainings of a small network would end at once."""
    table = table_of(_run_of(Outcome.COMPLETE, Outcome.COMPLETE, seconds=0.0312345))
    assert [one.seconds for network in table.networks for one in network.trainings] == [0.03123] * 2


def test_networks_that_did_not_reach_their_end_are_counted() -> None:
    """A run with a pruner has good networks left, and among them any search is easy."""
    whole = _run_of(Outcome.COMPLETE, Outcome.COMPLETE, Outcome.DUPLICATE, Outcome.REFUSED)
    assert table_of(whole).left_out == 0
    some = _run_of(Outcome.COMPLETE, Outcome.STOPPED, Outcome.COMPLETE, Outcome.FAILED)
    assert (len(table_of(some).networks), table_of(some).left_out) == (2, 2)


def test_a_replicate_that_is_cut_off_is_named(tmp_path: Path) -> None:
    tree = json.loads(gzip.decompress(SHIPPED.read_bytes()))
    del tree["networks"][1]["replicates"][0]["curve"][3:]
    file = tmp_path / "t.json.gz"
    file.write_bytes(gzip.compress(json.dumps(tree).encode(), 1))
    with pytest.raises(RunError, match=r"networks\[1\]\.replicates\[0\]: .* 3 of 10 epochs"):
        read_table(file)


@pytest.mark.slow
def test_shipped_tables_are_whole_and_priced_as_today() -> None:
    assert set(shipped_tables()) == {"digits", "fashion_32"}
    for name, file in shipped_tables().items():
        assert file.stat().st_size < 300_000
        table = find_table(name)
        number = {"digits": 150, "fashion_32": 100}[name]
        assert len({n.proposal.key for n in table.networks}) == len(table.networks) == number
        assert all(len(network.trainings) >= 2 for network in table.complete)
        for network in table.networks[::50]:
            assert closed_form(network.config).flops == network.proposal.flops
        assert "/" not in str(table.made.get("command"))


def test_changed_flops_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.json.gz"
    write_table(TABLE, file)
    tree = json.loads(gzip.decompress(file.read_bytes()))
    tree["networks"][3]["flops"] += 1
    file.write_bytes(gzip.compress(json.dumps(tree).encode()))
    with pytest.raises(RunError, match=r"networks\[3\]: had \d+ FLOPs .*; now it has \d+"):
        read_table(file)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b'{"format": 1}', mtime=0),
        gzip.compress(b'{"format": 9, "space": {}, "networks": [], "made": {}}', mtime=0),
        gzip.compress(b'{"format": 1, "space": {}, "networks": [], "made": {}}', mtime=0),
        gzip.compress(b'{"format": 1, "space": 3, "networks": 4, "made": 5}', mtime=0),
        gzip.compress(b"{", mtime=0)[:9],
    ],
)
def test_what_is_no_table_is_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "t.json.gz"
    file.write_bytes(content)
    with pytest.raises(VitnasError, match=r"t\.json\.gz"):
        read_table(file)


def test_a_table_of_another_name_is_told_the_nearest() -> None:
    with pytest.raises(RunError, match=r"digit: must be a run, .* \(nearest: digits\)"):
        find_table("digit")
