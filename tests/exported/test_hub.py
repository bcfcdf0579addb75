"""timm loads an exported folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import timm
import torch
from timm.data import create_transform, resolve_data_config
from timm.models._hub import save_for_hf

import vitnas
from tests.exported.test_design import DESIGNS
from tests.exported.test_network import AXES, BROAD, LOOPED, network, one_trial
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import load_space, shipped_spaces
from vitnas.config.trials import RandomTrial
from vitnas.errors import ConfigError, DataError
from vitnas.exported.design import build_design, design_text, file_of
from vitnas.exported.hub import hub_text, read_preprocessing
from vitnas.exported.network import export_network
from vitnas.exported.preprocessing import Preprocessing
from vitnas.nn.weights import weights_bytes

GREY = Preprocessing((0.2,), (0.3,), "stretch", "bilinear")


@pytest.mark.parametrize("config", [LOOPED, BROAD, AXES], ids=["loops", "broad", "axes"])
def test_timm_loads_the_weights(config: dict[str, object], tmp_path: Path) -> None:
    model = network(config)
    folder = export_network(*one_trial(config), weights_bytes(model), tmp_path / "net")
    again = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(again(images), model(images), rtol=0, atol=0)
    assert again.config == validate(ModelConfig, config)


def test_timm_gives_it_another_head(tmp_path: Path) -> None:
    """As anybody would who goes on training on images of another kind."""
    folder = export_network(*one_trial(LOOPED), weights_bytes(network(LOOPED)), tmp_path / "net")
    other = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=3, in_chans=1)
    assert other.eval()(torch.randn(1, 1, 32, 32)).shape == (1, 3)


def test_timm_prepares_images_as_in_training(tmp_path: Path) -> None:
    config = load_space("fashion_32").suggest(RandomTrial(1))
    (tmp_path / "config.json").write_text(hub_text(config, ["shirt", "caf\u00e9"], GREY))
    model = timm.create_model(f"local-dir:{tmp_path}")
    found = resolve_data_config(model=model)
    assert found["input_size"] == (1, 32, 32)
    assert (found["mean"], found["std"]) == ([0.2], [0.3])
    assert (found["crop_mode"], found["crop_pct"]) == ("squash", 1.0)
    assert found["interpolation"] == "bilinear"
    assert "Resize" in repr(create_transform(**found).transforms[0])
    assert model.pretrained_cfg["label_names"] == ["shirt", "caf\u00e9"]


def test_a_loaded_network_tells_timm_what_the_folder_says(tmp_path: Path) -> None:
    """Without it timm prepares images as for ImageNet, at 224 px, and says nothing."""
    config = load_space("fashion_32").suggest(RandomTrial(1))
    vitnas.save_config(config, tmp_path / "config.yaml")
    (tmp_path / "model.safetensors").write_bytes(weights_bytes(vitnas.build_model(config)))
    (tmp_path / "config.json").write_text(hub_text(config, (), GREY))
    theirs = resolve_data_config(model=timm.create_model(f"local-dir:{tmp_path}"))
    found = resolve_data_config(model=vitnas.load(tmp_path))
    assert found["input_size"] == (1, 32, 32)
    assert found | {"mean": [0.2], "std": [0.3]} == theirs
    assert (found["mean"], found["std"]) == ((0.2,), (0.3,))


@pytest.mark.parametrize("name", ["model file", "graft", "timm"])
def test_timm_saves_a_loaded_network_for_its_hub(name: str, tmp_path: Path) -> None:
    ours, theirs, design = tmp_path / "ours", tmp_path / "theirs", DESIGNS[name]
    ours.mkdir()
    how = Preprocessing((0.2, 0.3, 0.4), (0.3,) * 3, "stretch", "bilinear")
    (ours / file_of(design)).write_text(design_text(design))
    (ours / "model.safetensors").write_bytes(weights_bytes(build_design(design)))
    (ours / "config.json").write_text(hub_text(design, (), how))
    model = vitnas.load(ours)
    save_for_hf(model, theirs, safe_serialization=True)
    again = timm.create_model(f"local-dir:{theirs}", pretrained=True).eval()
    images = torch.randn(2, design.in_chans, *design.image_hw)
    assert torch.equal(again(images), model(images))
    assert resolve_data_config(model=again)["mean"] == [0.2, 0.3, 0.4]


@pytest.mark.parametrize("name", [n for n in shipped_spaces() if "/" not in n][::4])
def test_the_fields_are_the_network_s(name: str) -> None:
    config = load_space(name).suggest(RandomTrial(5))
    fields = json.loads(hub_text(config, (), GREY))["model_args"]
    with torch.device("meta"):
        assert timm.create_model("vitnas", **fields).config == config


@pytest.mark.parametrize(
    "how",
    [
        Preprocessing((0.1 + 0.2, 1 / 3), (1e-7, 0.3), remark="check these values"),
        Preprocessing((0.5,), (0.5,), "stretch", "bilinear"),
        Preprocessing((0.5,), (0.5,), "cover", "lanczos", 0.875),
    ],
)
def test_the_preprocessing_comes_back_to_the_last_digit(how: Preprocessing, tmp_path: Path) -> None:
    config = load_space("fashion_32").suggest(RandomTrial(1))
    (tmp_path / "config.json").write_text(hub_text(config, (), how))
    assert read_preprocessing(tmp_path, len(how.mean)) == how


def test_a_folder_that_was_written_before_has_none(tmp_path: Path) -> None:
    assert read_preprocessing(tmp_path, 3) is None


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"mean": [0.5]}, r"mean = \[0.5\]: the network takes 3 channels"),
        ({"std": [0.5] * 2}, r"std = \[0.5, 0.5\]: the network takes 3 channels"),
        ({"std": [0.5, 0.0, 1.0]}, r"std\[1\] = 0.0"),
        ({"mean": [0.5, 0.5, "x"]}, r"mean\[2\] = 'x'"),
        ({"crop_mode": "centre"}, "crop_mode = 'centre': .*nearest: center"),
        ({"crop_pct": 0.0}, "crop_pct = 0"),
    ],
)
def test_a_damaged_preprocessing_is_one_line(
    changes: dict[str, object], rule: str, tmp_path: Path
) -> None:
    cfg: dict[str, object] = {"mean": [0.0] * 3, "std": [1.0] * 3, **changes}
    (tmp_path / "config.json").write_text(json.dumps({"pretrained_cfg": cfg}))
    with pytest.raises(ConfigError, match=rf"config\.json: {rule}"):
        read_preprocessing(tmp_path, 3)


@pytest.mark.parametrize("text", ["nothing", "[1]", "[" * 9999])
def test_what_is_no_json_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DataError, match=r"config\.json: is not "):
        read_preprocessing(tmp_path, 3)
