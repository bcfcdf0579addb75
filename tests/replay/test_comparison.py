"""Pairs of a sampler and a pruner: the same figures in text, in JSON, and by any processes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.replay.made_up import TABLE
from vitnas.cli import main
from vitnas.replay.comparison import compare, comparison_json, comparison_text
from vitnas.replay.tables import write_table


def test_a_comparison_in_text_and_json() -> None:
    pairs = compare(TABLE, ["random", "ehvi"], ["none", "front"], seeds=2, trials=15)
    text, tree = comparison_text(TABLE, pairs), comparison_json(TABLE, pairs)
    assert "40 networks of 6 epochs" in text
    assert "the error of" not in text, "the table does not say how many images there were"
    known = comparison_text(replace(TABLE, made={"data": {"num_val_images": 400}}), pairs)
    ends = np.array([network.top1 for network in TABLE.complete]) / 100
    error = 100 * np.sqrt((ends * (1 - ends)).mean() / 400)
    found = re.search(r"the error of 400 images alone: (\S+)", known)
    assert found is not None
    assert float(found[1]) == pytest.approx(error, rel=0.05)
    assert f"deviation {100 * ends.std():.2f} points" in known
    assert text.count("ehvi / front") == 3
    assert json.loads(json.dumps(tree))["pairs"][3]["sampler"] == "ehvi"
    figure = tree["pairs"][0]["volume"]["trials_to_95"]
    assert figure["low"] <= figure["mean"] <= figure["high"]


def test_networks_that_are_left_out_are_told() -> None:
    pairs = compare(TABLE, ["random"], ["none"], seeds=2, trials=5)
    assert "left out" not in comparison_text(TABLE, pairs)
    text = comparison_text(replace(TABLE, made={"left_out": 7}), pairs)
    assert "7 networks of the run are left out" in text


def test_one_seed_has_no_interval() -> None:
    """A bootstrap of one value had an interval without width."""
    pairs = compare(TABLE, ["random"], ["none"], seeds=1, trials=15)
    text, tree = comparison_text(TABLE, pairs), comparison_json(TABLE, pairs)
    assert "1 seed, no intervals" in text
    assert not re.search(r"\d-\d", text)
    figure = tree["pairs"][0]["volume"]["trials_to_95"]
    assert (figure["low"], figure["high"]) == (None, None)
    assert figure["mean"] > 0


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


@pytest.mark.slow
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
