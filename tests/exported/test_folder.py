"""A network leaves and comes back the same, or nothing is written at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import vitnas
from tests.report.runs import run_of, tree, trial
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig, load_config
from vitnas.errors import ConfigError, DataError, RunError, VitnasError
from vitnas.exported.folder import CONFIG_FILE, WEIGHTS_FILE
from vitnas.exported.network import export_network
from vitnas.exported.read import load
from vitnas.nn.model import build_model
from vitnas.nn.weights import weights_bytes
from vitnas.records import Run, TrialRecord

LOOPED = tree("dwconv", "mhsa")
LOOPED["stages"][1] |= {"groups": [4, 1], "nll_ratio": 1.0}
BROAD = {**tree("mhsa", "ska"), "broad": {"gamma": 0.4}}


def network(config: dict[str, Any]) -> torch.nn.Module:
    """With weights and batch norm statistics unlike fresh ones, in eval mode."""
    torch.manual_seed(3)
    model = build_model(validate(ModelConfig, config))
    images = torch.randn(4, 3, 32, 32)
    for _ in range(2):
        model.train()(images)
    return model.eval()


def one_trial(config: dict[str, Any] | None = None, **more: Any) -> tuple[Run, TrialRecord]:
    chosen = trial(5, 61.25, config=config or tree(), **more)
    return run_of(Path("results/small"), chosen), chosen


@pytest.mark.parametrize("config", [tree(), LOOPED, BROAD, tree("cska", "pool", "mlp")])
def test_the_same_logits_come_back(config: dict[str, Any], tmp_path: Path) -> None:
    model = network(config)
    folder = export_network(*one_trial(config), weights_bytes(model), tmp_path / "net")
    loaded = load(folder)
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(loaded(images), model(images))
    assert not loaded.training
    assert load_config(folder / CONFIG_FILE).to_tree() == validate(ModelConfig, config).to_tree()


def test_the_folder_has_three_files_and_no_leftovers(tmp_path: Path) -> None:
    folder = tmp_path / "nets" / "one"
    folder.mkdir(parents=True)  # empty folders are welcome
    export_network(*one_trial(), weights_bytes(network(tree())), str(folder))
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        CONFIG_FILE,
        WEIGHTS_FILE,
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["one"]
    assert vitnas.load(folder).num_classes == 10


@pytest.mark.parametrize("kind", ["full", "file", "broken link"])
def test_what_is_there_stays(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "net"
    if kind == "full":
        target.mkdir()
        (target / "mine.txt").write_text("mine")
    elif kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(RunError, match="give a new or an empty folder"):
        export_network(*one_trial(), weights_bytes(network(tree())), target)
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_weights_of_another_network_write_nothing(tmp_path: Path) -> None:
    other = weights_bytes(network(tree("dwconv", "mhsa", depth=2)))
    with pytest.raises(ConfigError, match="weights of another network"):
        export_network(*one_trial(), other, tmp_path / "net")
    with pytest.raises(DataError, match="safetensors"):
        export_network(*one_trial(), other[:100], tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    weights = weights_bytes(network(tree()))
    monkeypatch.setattr("vitnas.exported.network.write_bytes", full_disk)
    with pytest.raises(RunError, match="net: cannot be written: no space left on device"):
        export_network(*one_trial(), weights, tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        export_network(*one_trial(), weights_bytes(network(tree())), tmp_path / "file" / "net")


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    return export_network(*one_trial(), weights_bytes(network(tree())), tmp_path / "net")


def damage(folder: Path, kind: str) -> None:
    weights, config = folder / WEIGHTS_FILE, folder / CONFIG_FILE
    content = weights.read_bytes()
    if kind == "no weights":
        weights.unlink()
    elif kind == "no config":
        config.unlink()
    elif kind == "cut weights":
        weights.write_bytes(content[: len(content) // 2])
    elif kind == "no safetensors":
        weights.write_bytes(b"\x80\x04 a pickle")
    elif kind == "no configuration":
        config.write_text("name: [")
    elif kind == "wider":
        config.write_text(config.read_text().replace("embed_dim: 64", "embed_dim: 128"))
    else:
        config.write_text(config.read_text().replace("mhsa", "cska"))


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("no weights", f"{WEIGHTS_FILE}: no such file"),
        ("no config", f"{CONFIG_FILE}: no such file"),
        ("cut weights", WEIGHTS_FILE),
        ("no safetensors", "not a safetensors file"),
        ("no configuration", CONFIG_FILE),
        ("wider", "weights of another network: "),
        ("another mixer", "weights of another network"),
    ],
)
def test_damage_is_one_clear_line(kind: str, part: str, exported: Path) -> None:
    damage(exported, kind)
    with pytest.raises(VitnasError) as caught:
        load(exported)
    line = str(caught.value)
    assert part in line
    assert str(exported) in line
    assert "\n" not in line
    assert len(line) < 300


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match="no such file"):
        load(tmp_path / "nowhere")


def test_others_may_read_the_folder(exported: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert exported.stat().st_mode & 0o777 == 0o777 & ~mask


@pytest.mark.parametrize("kind", ["dot", "link", "folder"])
def test_an_empty_folder_stays_the_one_it_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the current one, one behind a link, and so a mount point."""
    there = tmp_path / "there"
    there.mkdir()
    before = there.stat().st_ino
    (tmp_path / "link").symlink_to(there)
    monkeypatch.chdir(there)
    to = {"dot": Path(), "link": tmp_path / "link", "folder": there}[kind]
    run, chosen = one_trial()
    export_network(run, chosen, weights_bytes(network(tree())), to)
    assert there.stat().st_ino == before
    assert (tmp_path / "link").is_symlink()
    assert {file.name for file in there.iterdir()} == {CONFIG_FILE, WEIGHTS_FILE, "README.md"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "there"]


def test_a_disk_that_fills_leaves_the_empty_folder_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, chosen = one_trial()
    rename = Path.rename
    moved: list[Path] = []

    def full(self: Path, target: Path) -> Path:
        if moved:
            raise OSError(28, "No space left on device")
        moved.append(target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(RunError, match="cannot be written: no space left"):
        export_network(run, chosen, weights_bytes(network(tree())), tmp_path)
    assert moved
    assert not list(tmp_path.iterdir())
