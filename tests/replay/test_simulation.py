"""Recorded tables and the replayed search: the real engine, nothing trained."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.conftest import make_space
from vitnas.cli import main
from vitnas.cost.closed_form import closed_form
from vitnas.engine.pruning import DEFAULT_PRUNER
from vitnas.engine.samplers import DEFAULT_SAMPLER, SAMPLERS, SamplerName
from vitnas.engine.samplers.pool import SpacePool
from vitnas.errors import RunError, VitnasError
from vitnas.records import Outcome
from vitnas.replay.comparison import compare, comparison_json, comparison_text
from vitnas.replay.simulation import Trace, replay
from vitnas.replay.tables import (
    Recorded,
    Table,
    find_table,
    read_table,
    shipped_tables,
    write_table,
)


def made_up_table(count: int = 40) -> Table:
    """Networks of the tiny space with curves that rise with FLOPs, one of them diverging."""
    space = make_space(proxy={"epochs": 6, "batch_size": 64})
    proposals = sorted(SpacePool(space, 0, first=400).sample(), key=lambda p: p.key)[:count]
    networks = []
    for index, proposal in enumerate(proposals):
        end = 60 + 30 * (1 - 2e5 / (proposal.flops + 2e5)) + index % 7
        curve = tuple(round(end - 10 / epoch, 4) for epoch in range(1, 7))
        config = space.suggest(_Answers(proposal.params))
        networks.append(Recorded(config, proposal, curve, seconds=3.0 + index % 3))
    lost = replace(networks[5], curve=networks[5].curve[:1], outcome=Outcome.DIVERGED)
    networks[5] = lost
    return Table(space, tuple(networks), {"command": "made up"})


class _Answers:
    def __init__(self, params: object) -> None:
        self._params = params

    def suggest_categorical(self, name: str, choices: object) -> object:
        return self._params[name]  # type: ignore[index]

    suggest_int = suggest_float = lambda self, name, low, high, **more: self._params[name]


TABLE = made_up_table()


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("workers", [1, 5])
def test_a_whole_replay_trains_every_network_once(sampler: SamplerName, workers: int) -> None:
    trace = replay(TABLE, sampler, workers=workers)
    assert trace.started == len(TABLE.networks)
    assert len(trace.steps) == len(TABLE.complete)
    assert trace.epochs == 1.0
    assert trace.steps[-1].volume == pytest.approx(1.0)
    assert trace.steps[-1].strict == pytest.approx(1.0)
    volumes = [step.volume for step in trace.steps]
    assert volumes == sorted(volumes)


def test_a_replay_is_the_same_again_and_another_with_another_seed() -> None:
    first, again, other = (replay(TABLE, "ehvi", "both", seed=s, trials=20) for s in (0, 0, 1))
    assert first == again
    assert first != other


def test_workers_divide_the_time_and_not_the_epochs() -> None:
    alone, five = (replay(TABLE, "random", workers=n) for n in (1, 5))
    assert alone.seconds == pytest.approx(sum(n.seconds for n in TABLE.networks))
    assert alone.seconds / 5 <= five.seconds < alone.seconds / 4


def test_pruning_spends_less_and_counts_what_it_lost() -> None:
    trace = replay(TABLE, "random", "front")
    assert trace.epochs < 1.0
    assert trace.stopped
    assert trace.lost == len(TABLE.front & set(trace.stopped))
    complete = len(trace.steps)
    assert complete + len(trace.stopped) + 1 == trace.started


def test_reach_and_at_read_the_steps() -> None:
    trace = replay(TABLE, "random")
    first = next(step for step in trace.steps if step.volume >= 0.9)
    assert trace.reach(0.9, "volume", "trials") == first.trials
    assert trace.reach(0.9, "volume", "epochs") == first.epochs
    assert trace.at(first.epochs, "volume") == first.volume
    assert trace.at(0.0, "volume") == 0.0
    assert Trace((), (), 0, 0, 0.0, 0.0).reach(0.5, "strict", "trials") is None


def test_a_table_survives_its_file(tmp_path: Path) -> None:
    file, again = tmp_path / "t.json.gz", tmp_path / "again.json.gz"
    write_table(TABLE, file)
    read = read_table(file)
    assert read.networks == TABLE.networks
    write_table(read, again)
    assert again.read_bytes() == file.read_bytes()


def test_shipped_tables_are_whole_and_priced_as_today() -> None:
    assert "digits" in shipped_tables()
    for name, file in shipped_tables().items():
        assert file.stat().st_size < 300_000
        table = find_table(name)
        assert len({n.proposal.key for n in table.networks}) == len(table.networks) >= 150
        for network in table.networks[::50]:
            assert closed_form(network.config).flops == network.proposal.flops
        assert "/" not in str(table.made.get("command"))


@pytest.mark.parametrize("name", sorted(shipped_tables()))
def test_the_default_is_not_below_random(name: str) -> None:
    """At a tenth of the epochs, by either measure, mean of three seeds."""
    table = find_table(name)
    trials = len(table.networks) // 6
    ours, theirs = (
        [replay(table, sampler, pruner, seed=seed, trials=trials) for seed in range(3)]
        for sampler, pruner in ((DEFAULT_SAMPLER, DEFAULT_PRUNER), ("random", "none"))
    )
    for of in ("volume", "strict"):
        for share in (0.02, 0.05, 0.1):
            found, drawn = (sum(t.at(share, of) for t in traces) for traces in (ours, theirs))
            assert found > drawn, (of, share)


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


def test_a_comparison_in_text_and_json() -> None:
    pairs = compare(TABLE, ["random", "ehvi"], ["none", "front"], seeds=2, trials=15)
    text, tree = comparison_text(TABLE, pairs), comparison_json(TABLE, pairs)
    assert "40 networks of 6 epochs" in text
    assert "the error of" not in text, "the table does not say how many images there were"
    known = comparison_text(replace(TABLE, made={"data": {"num_val_images": 400}}), pairs)
    ends = np.array([network.curve[-1] for network in TABLE.complete]) / 100
    error = 100 * np.sqrt((ends * (1 - ends)).mean() / 400)
    found = re.search(r"the error of 400 images alone: (\S+)", known)
    assert found is not None
    assert float(found[1]) == pytest.approx(error, rel=0.05)
    assert f"deviation {100 * ends.std():.2f} points" in known
    assert text.count("ehvi / front") == 3
    assert json.loads(json.dumps(tree))["pairs"][3]["sampler"] == "ehvi"
    figure = tree["pairs"][0]["volume"]["trials_to_95"]
    assert figure["low"] <= figure["mean"] <= figure["high"]


def test_bins_reach_the_pruner() -> None:
    """What they are for is tested with the pruner."""
    one, three = (compare(TABLE, ["random"], ["front"], seeds=1, bins=bins) for bins in (1, 3))
    assert one != three


def test_processes_find_what_one_finds() -> None:
    options: dict[str, Any] = {"samplers": ["tpe"], "pruners": ["none", "curve"], "seeds": 2}
    told: list[str] = []
    one, two = (
        compare(TABLE, **options, trials=12, processes=n, listener=told.append) for n in (1, 2)
    )
    assert one == two
    assert told == ["tpe, pruner none", "tpe, pruner curve"] * 2


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.json.gz"
    write_table(TABLE, file)
    options = ["--sampler", "random", "--pruner", "none", "--seeds", "2", "--json"]
    with pytest.raises(SystemExit) as done:
        main(["replay", str(file), *options])
    assert done.value.code == 0
    assert json.loads(capsys.readouterr().out)["networks"] == 40
    with pytest.raises(SystemExit) as done:
        main(["replay", str(file), "--record", str(tmp_path / "copy.json.gz")])
    assert (tmp_path / "copy.json.gz").read_bytes() == file.read_bytes()
    with pytest.raises(SystemExit) as done:
        main(["replay", str(file), *options, "--trials", "4", "--plot", str(tmp_path / "p.png")])
    assert done.value.code == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    nowhere = [str(file), *options, "--trials", "4", "--plot", str(tmp_path)]
    for wrong in (
        nowhere,
        ["nowhere"],
        [str(file), "--sampler", "epvi"],
        [str(file), "--pruner", "x"],
    ):
        with pytest.raises(SystemExit) as done:
            main(["replay", *wrong])
        assert done.value.code == 2
