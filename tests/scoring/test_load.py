"""Folders, programs and names are opened; what is no network is one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import timm
import torch

from vitnas.errors import ConfigError, DataError, VitnasError
from vitnas.exported.folder import write_classes
from vitnas.exported.grafts import graft_named
from vitnas.exported.hub import HUB_FILE
from vitnas.exported.preprocessing import Preprocessing
from vitnas.nn.weights import weights_bytes
from vitnas.nn.zoo import zoo_config
from vitnas.scoring.load import load_classifier


def test_a_folder(colours_net: Path) -> None:
    found = load_classifier(colours_net, "cpu")
    assert (found.name, found.runtime) == (str(colours_net), "PyTorch")
    assert (found.in_chans, found.image_hw, found.num_classes) == (3, (16, 16), 3)
    assert found.names == ("blue", "green", "red")
    assert found.preprocessing is not None
    assert found.preprocessing.fit == "cover"


def test_a_graft_has_timm_s_preprocessing(tmp_path: Path) -> None:
    options = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3}
    options |= {"num_classes": 4}
    fields = {"mixer": "cska"}
    graft_named("vit_tiny_patch16_224", fields, options, to=tmp_path / "net")
    found = load_classifier(tmp_path / "net", "cpu")
    assert (found.in_chans, found.image_hw, found.num_classes) == (3, (32, 32), 4)
    half = (0.5, 0.5, 0.5)
    assert found.preprocessing == Preprocessing(half, half, "cover", "bicubic", 0.9)


def test_a_name_of_timm_with_weights(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    network = timm.create_model("test_vit", num_classes=3)
    file.write_bytes(weights_bytes(network))
    found = load_classifier("test_vit", "cpu", str(file), 3)
    assert (found.num_classes, found.names) == (3, ())
    images = torch.randn(2, 3, *found.image_hw)
    with torch.no_grad():
        assert torch.equal(found.scores(images), network.eval()(images))
    with pytest.raises(ConfigError, match=r"'patch_embed\.proj\.weight' is \[64, 3, "):
        load_classifier("test_vit", "cpu", str(file), 1)
    with pytest.raises(ConfigError, match=r"w\.safetensors: weights of another network"):
        load_classifier("test_resnet", "cpu", str(file))


def test_two_classifiers_have_as_many_classes_as_their_weights(tmp_path: Path) -> None:
    name, file = "deit_tiny_distilled_patch16_224", tmp_path / "w.safetensors"
    file.write_bytes(weights_bytes(timm.create_model(name, num_classes=3)))
    assert load_classifier(name, "cpu", str(file)).num_classes == 3


def test_weights_in_a_folder_of_vitnas_have_its_names_and_preparation(tmp_path: Path) -> None:
    network = timm.create_model("test_vit", num_classes=3)
    write_classes(tmp_path, ("blue", "green", "red"))
    stated = {"mean": [0.4, 0.4, 0.4], "std": [0.2, 0.2, 0.2]}
    (tmp_path / HUB_FILE).write_text(json.dumps({"pretrained_cfg": stated}))
    for name in ("model.safetensors", "other.safetensors"):
        (tmp_path / name).write_bytes(weights_bytes(network))
    own, foreign = (
        load_classifier("test_vit", "cpu", str(tmp_path / name))
        for name in ("model.safetensors", "other.safetensors")
    )
    assert own.names == ("blue", "green", "red")
    assert foreign.names == ()
    assert own.preprocessing is not None
    assert foreign.preprocessing is not None
    assert own.preprocessing.mean == (0.4, 0.4, 0.4) != foreign.preprocessing.mean


@pytest.mark.slow
def test_a_name_of_the_zoo_with_weights(tmp_path: Path) -> None:
    from vitnas.nn.model import build_model

    config = zoo_config("sret_t", num_classes=3)
    (tmp_path / "w.safetensors").write_bytes(weights_bytes(build_model(config)))
    found = load_classifier("sret_t", "cpu", str(tmp_path / "w.safetensors"))
    assert (found.image_hw, found.num_classes) == (config.image_hw, 3)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        ("resnet19", r"MODEL = 'resnet19': neither a folder, .* \(nearest: resnet1"),
        ("no/such/folder", "MODEL = 'no/such/folder': no such folder or file"),
        ("hf_hub:who/what", "MODEL = 'hf_hub:who/what': no such folder or file"),
        ("sret_t", "MODEL = 'sret_t': a model of the zoo has no trained weights of its own"),
        ("", "MODEL = '': neither a folder"),
        ("weights.pth", "weights.pth: is a file of weights; vitnas convert makes a folder"),
        ("absent.onnx", "absent.onnx: no such file or directory"),
    ],
)
def test_what_is_no_network_is_one_line(model: str, rule: str) -> None:
    with pytest.raises(VitnasError, match=rule):
        load_classifier(model, "cpu")


def test_a_folder_that_is_no_network_says_what_would_be(digits_net: Path, tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match=r"has no config\.yaml; give a folder that vitnas"):
        load_classifier(tmp_path)
    nearest = rf"did you mean {digits_net.parent}/net\?"
    with pytest.raises(VitnasError, match=nearest):
        load_classifier(digits_net.parent)
    (tmp_path / "study.db").touch()
    with pytest.raises(VitnasError, match=r"is a run, not a network; vitnas export .* --knee --to"):
        load_classifier(tmp_path)


@pytest.mark.parametrize("name", ["config.yaml", "model.safetensors", "README.md"])
def test_a_file_of_a_network_stands_for_its_folder(name: str, digits_net: Path) -> None:
    with pytest.raises(VitnasError, match=r"one file of a network; give its folder, .*net$"):
        load_classifier(digits_net / name)


def test_another_file_is_no_network(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").touch()
    with pytest.raises(VitnasError, match=r"net\.yaml: is neither a folder with a network nor"):
        load_classifier(tmp_path / "net.yaml")


def test_a_folder_has_its_own_weights(digits_net: Path) -> None:
    with pytest.raises(VitnasError, match="has its own weights; leave --weights out"):
        load_classifier(digits_net, "cpu", "w.safetensors")


def test_a_tampered_file_is_one_line(digits_net: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(digits_net, tmp_path / "net")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-8])
    with pytest.raises(DataError, match=r"model\.safetensors: not a safetensors file"):
        load_classifier(folder)
