"""A folder keeps which images its training held out, and tells where others are asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exported.test_network import LOOPED, network, one_trial
from vitnas.config.data import DataConfig
from vitnas.errors import ConfigError
from vitnas.exported.held_out import HeldOut, held_out_of, read_held_out
from vitnas.exported.network import export_network
from vitnas.nn.weights import weights_bytes

USUAL = HeldOut(val_fraction=0.2, split_seed=0)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({}, ""),
        ({"val_fraction": 0.1}, ""),
        ({"val_fraction": 0.25}, "20 % (split_seed 0), and these images are 25 % (split_seed 0):"),
        ({"split_seed": 1}, "20 % (split_seed 0), and these images are 20 % (split_seed 1):"),
    ],
)
def test_only_a_part_of_what_was_held_out_has_not_trained(data: dict[str, Any], told: str) -> None:
    remark = USUAL.remark(DataConfig(**data))
    assert told in remark
    assert bool(remark) == bool(told)


def test_of_some_classes_it_is_another_draw() -> None:
    assert "20 % (split_seed 0) of some" in USUAL.remark(DataConfig(), of_all_classes=False)


def test_own_images_that_score_leave_nothing_held_out() -> None:
    found = held_out_of(DataConfig(val_split="test"))
    assert found == HeldOut(val_fraction=0.0, split_seed=0)
    assert "held out none of its images" in found.remark(DataConfig())
    assert held_out_of({"name": "digits"}) is None


def test_an_export_keeps_that_of_its_run(tmp_path: Path) -> None:
    run, trial = one_trial(LOOPED)
    folder = export_network(run, trial, weights_bytes(network(LOOPED)), tmp_path / "net")
    assert read_held_out(folder) == held_out_of(run.space.get("data") or {})
    assert read_held_out(tmp_path) is None


def test_a_damaged_one_is_one_line(tmp_path: Path) -> None:
    held = {"val_fraction": 0.9, "split_seed": 0}
    (tmp_path / "config.json").write_text(json.dumps({"held_out": held}))
    with pytest.raises(ConfigError, match=r"config\.json: val_fraction = 0\.9: "):
        read_held_out(tmp_path)
