"""A network leaves and comes back the same, or nothing is written at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import vitnas
from tests.report.runs import run_of, tree, trial
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig, load_config
from vitnas.errors import ConfigError, DataError
from vitnas.exported.folder import CLASSES_FILE, CONFIG_FILE, WEIGHTS_FILE
from vitnas.exported.hub import HUB_FILE, read_preprocessing
from vitnas.exported.network import export_network
from vitnas.exported.preprocessing import trained_on
from vitnas.exported.read import load
from vitnas.nn.model import build_model
from vitnas.nn.weights import weights_bytes
from vitnas.records import TrialRecord
from vitnas.run import Run
from vitnas.sessions import Data

LOOPED = tree("dwconv", "mhsa")
LOOPED["stages"][1] |= {"groups": [4, 1], "nll_ratio": 1.0}
BROAD = {**tree("mhsa", "ska"), "broad": {"gamma": 0.4}}

_ATTENTION = {"attn_dim": 24, "num_heads": 3, "attn_act": "star_relu", "mask_diagonal": True}
AXES = {
    **tree("mhsa", "cska"),
    "stem": {"kind": "shifted", "stride": 4},
    "broad": {"gamma": 0.4, "layers": "last:1"},
}
AXES["stages"][0] |= _ATTENTION | {"attn_dim": 16, "num_heads": 2}
AXES["stages"][1] |= _ATTENTION | {"key_kernel": 5, "windows": 2, "kernel_qkv": 3}


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


@pytest.mark.parametrize("config", [tree(), LOOPED, BROAD, AXES, tree("cska", "pool", "mlp")])
def test_the_same_logits_come_back(config: dict[str, Any], tmp_path: Path) -> None:
    model = network(config)
    folder = export_network(*one_trial(config), weights_bytes(model), tmp_path / "net")
    loaded = load(folder)
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(loaded(images), model(images))
    assert not loaded.training
    named = {**config, "name": "hybrid_cifar-trial-5"}
    assert load_config(folder / CONFIG_FILE).to_tree() == validate(ModelConfig, named).to_tree()


def test_the_folder_has_its_files_and_no_leftovers(tmp_path: Path) -> None:
    folder = tmp_path / "nets" / "one"
    folder.mkdir(parents=True)  # empty folders are welcome
    export_network(*one_trial(), weights_bytes(network(tree())), str(folder))
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        HUB_FILE,
        CONFIG_FILE,
        WEIGHTS_FILE,
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["one"]
    assert vitnas.load(folder).num_classes == 10


def test_the_names_of_the_classes_come_back(tmp_path: Path) -> None:
    run, chosen = one_trial()
    names = ["a b", *(f"class {number}" for number in range(8)), "ñandú"]
    data = run.environment.data.model_copy(update={"classes": names})
    named = replace(run, environment=run.environment.model_copy(update={"data": data}))
    folder = export_network(named, chosen, weights_bytes(network(tree())), tmp_path / "net")
    assert load(folder).label_names == tuple(names)
    (folder / CLASSES_FILE).write_text("one\ntwo\n")
    with pytest.raises(DataError, match=r"labels\.txt: 2 names for 10 classes"):
        load(folder)


def test_a_run_of_several_sizes_says_the_values_of_the_network_s_own(tmp_path: Path) -> None:
    run, chosen = one_trial()
    of_size = {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}
    data = Data.model_validate({"name": "cifar10", "by_size": {"32x32": of_size}})
    told = replace(run, environment=run.environment.model_copy(update={"data": data}))
    folder = export_network(told, chosen, weights_bytes(network(tree())), tmp_path / "net")
    how = read_preprocessing(folder, 3)
    assert how == trained_on("cifar10", (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    card = (folder / "README.md").read_text()
    assert "by_size" not in card
    assert "mean 0.1" in card


def test_weights_of_another_network_write_nothing(tmp_path: Path) -> None:
    other = weights_bytes(network(tree("dwconv", "mhsa", depth=2)))
    with pytest.raises(ConfigError, match="weights of another network"):
        export_network(*one_trial(), other, tmp_path / "net")
    with pytest.raises(DataError, match="safetensors"):
        export_network(*one_trial(), other[:100], tmp_path / "net")
    assert list(tmp_path.iterdir()) == []
