"""Which network is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch

from tests.diagnose.networks import MHSA, config, network
from tests.nn.graft.networks import t2t
from vitnas.config.files import dump_yaml
from vitnas.diagnose.subject import load_subject, subject_of
from vitnas.errors import ConfigError, DataError, VitnasError
from vitnas.exported.grafts import graft_named
from vitnas.exported.hub import hub_text
from vitnas.exported.preprocessing import Preprocessing
from vitnas.nn.graft.apply import graft
from vitnas.nn.weights import weights_bytes


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(dump_yaml(config(MHSA).to_tree()))
    return path


@pytest.fixture
def folder(tmp_path: Path, model_file: Path) -> Path:
    where = tmp_path / "exported"
    where.mkdir()
    (where / "config.yaml").write_bytes(model_file.read_bytes())
    (where / "model.safetensors").write_bytes(weights_bytes(network(MHSA)))
    return where


def test_a_model_of_the_zoo_has_the_weights_of_the_seed() -> None:
    state = torch.get_rng_state()
    first, same, other = (load_subject("bvit_5m", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert (first.name, first.image_hw, first.in_chans) == ("bvit_5m", (224, 224), 3)
    assert first.mean == (0.485, 0.456, 0.406)
    weights = [next(one.network.parameters()) for one in (first, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_model_of_timms() -> None:
    found = load_subject("vit_small_patch32_384")
    assert (found.image_hw, found.in_chans, found.weights) == ((384, 384), 3, "random, seed 0")
    assert not found.network.training


def test_a_network_says_its_channels_where_its_first_convolution_does_not() -> None:
    """T2T-ViT cuts an image without a convolution; a graft's folder says how many channels."""
    model: Any = t2t(in_chans=1)
    graft(model, mixer="cska", blocks="last:1")
    model.in_chans = 1
    assert subject_of(model, "t2t", "random").in_chans == 1
    del model.in_chans
    assert subject_of(model, "t2t", "random").in_chans == 24, "the channels of cska"


def test_a_model_file_with_given_weights(model_file: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(weights_bytes(network(MHSA)))
    found = load_subject(str(model_file), str(weights))
    assert (found.name, found.image_hw, found.in_chans) == ("small", (8, 8), 1)
    for mine, given in zip(found.network.parameters(), network(MHSA).parameters(), strict=True):
        assert torch.equal(mine, given)


def test_weights_of_another_network_are_refused(model_file: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(weights_bytes(network(MHSA | {"depth": 2})))
    with pytest.raises(ConfigError, match="weights of another network"):
        load_subject(str(model_file), str(weights))
    with pytest.raises(DataError, match="no such file"):
        load_subject(str(model_file), str(tmp_path / "none"))


def test_an_exported_folder_and_its_log(folder: Path) -> None:
    assert load_subject(str(folder)).log is None
    (folder / "log.jsonl").write_text("")
    found = load_subject(str(folder))
    assert (found.name, found.log) == ("exported", folder / "log.jsonl")
    with pytest.raises(VitnasError, match="leave --weights out"):
        load_subject(str(folder), "w.safetensors")


def test_an_exported_folder_says_how_its_training_had_images(folder: Path) -> None:
    assert load_subject(str(folder)).mean is None
    how = Preprocessing((0.25,), (0.5,))
    (folder / "config.json").write_text(hub_text(config(MHSA), (), how))
    found = load_subject(str(folder))
    assert (found.mean, found.std) == ((0.25,), (0.5,))


@pytest.mark.slow
def test_a_graft_says_its_image_size_where_timm_has_none(tmp_path: Path) -> None:
    fields = {"reattention_blocks": 1}
    graft_named("pvt_v2_b0", fields, {"img_size": 32, "num_classes": 5}, to=tmp_path / "pvt")
    assert load_subject(str(tmp_path / "pvt")).image_hw == (32, 32)


def test_a_folder_that_is_no_export(tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match=r"has no config\.yaml; give a folder"):
        load_subject(str(tmp_path))


def test_a_folder_without_a_network_does_not_hide_a_model_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bvit_5m").mkdir()
    assert load_subject("bvit_5m").weights == "random, seed 0"


@pytest.mark.parametrize(
    ("name", "nearest"), [("sret_tt", "sret_t"), ("vit_tiny_patch16_22", "vit_tiny_patch16_224")]
)
def test_a_name_that_is_almost_right(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_subject(name)
    assert f"MODEL = '{name}'" in str(error.value)
    assert str(error.value).endswith(f"(nearest: {nearest})")
    assert timm.is_model(nearest) or nearest == "sret_t"


@pytest.mark.parametrize("name", ["no/such/folder", "hf_hub/thing", "a\0b/c", "x" * 5000])
def test_what_is_neither(name: str) -> None:
    with pytest.raises(VitnasError):
        load_subject(name)
