"""What a training is of: every mistake in one line, before torch is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.nn.networks import vit
from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import Recipe
from vitnas.errors import VitnasError
from vitnas.training.plan import make_plan


@pytest.fixture
def model_file(tiny_config: ModelConfig, tmp_path: Path) -> Path:
    save_config(tiny_config, tmp_path / "net.yaml")
    return tmp_path / "net.yaml"


def test_a_folder_of_other_channels_is_named(tmp_path: Path) -> None:
    save_config(vit(in_chans=3), tmp_path / "config.yaml")
    with pytest.raises(VitnasError, match=r"config\.yaml: in_chans = 3: digits has 1 channel \("):
        make_plan(tmp_path, "digits")


def test_a_model_of_the_zoo_gets_the_datas_classes_and_channels() -> None:
    config = make_plan("sret_t", "digits", img_size=32).config
    assert (config.num_classes, config.in_chans, config.image_hw) == (10, 1, (32, 32))
    assert make_plan("sret_t", "cifar100:/anywhere", img_size=64).config.num_classes == 100


def test_a_model_file_is_what_it_says(model_file: Path, tiny_config: ModelConfig) -> None:
    assert make_plan(model_file).config == tiny_config
    assert make_plan(model_file, img_size=16).config.image_hw == (16, 16)
    with pytest.raises(VitnasError, match="num_classes = 10: cifar100 has 100 classes"):
        make_plan(model_file, "cifar100")


def test_a_recipes_drop_path_is_the_networks(model_file: Path, tiny_config: ModelConfig) -> None:
    assert tiny_config.drop_path_rate == 0.1
    for recipe, rate in ((Recipe(), 0.1), (Recipe(drop_path_rate=0.3), 0.3)):
        config = make_plan(model_file, recipe=recipe).config
        assert isinstance(config, ModelConfig)
        assert config.drop_path_rate == rate


def test_options_come_before_the_recipe(model_file: Path) -> None:
    plan = make_plan(model_file, recipe="sret_distill", epochs=2, teacher="here")
    assert (plan.recipe.epochs, plan.recipe.distill.teacher) == (2, "here")
    assert plan.recipe.batch_size == 1024


def test_the_identity_knows_the_first_weights(model_file: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"some")
    plan = make_plan(model_file, init_from=tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"other")
    assert plan.identity() != make_plan(model_file).identity()
    digests = {plan.identity()["init_from"], make_plan(model_file).identity()["init_from"]}
    assert len(digests) == 2


def test_it_is_scored_on_images_of_their_own(model_file: Path) -> None:
    plan = make_plan(model_file, score_on="test")
    assert plan.data == DataConfig(val_split="test", val_fraction=0.0)
    assert plan.line(1437, 360).endswith("; trains on 1,437 images, is scored on the 360 of test")
    assert plan.identity() != make_plan(model_file).identity()
    assert ", 1 epoch of small;" in make_plan(model_file, epochs=1).line(1437, 360)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"model": "sret_tt"}, r"name = 'sret_tt': no such model in the zoo \(nearest: sret_t"),
    ({"model": "gone.yaml"}, "gone.yaml: no such file"),
    ({"model": "some/folder"}, "some/folder: no such file"),
    ({"model": "."}, r"\.: has no config\.yaml; give a folder that vitnas export"),
    ({"data": "digit"}, r"--data = 'digit': is neither a folder.*\(nearest: digits\)"),
    ({"data": ""}, "--data = '': is neither a folder"),
    ({"data": "digits:/x"}, r"--data = 'digits:/x': digits come with scikit-learn"),
    ({"data": "\0"}, r"data = .*is neither a folder"),
    ({"recipe": "smal"}, r"recipe = 'smal': no such recipe.*\(nearest: small\)"),
    ({"epochs": 0}, r"epochs = 0: .*\(nearest: 1\)"),
    ({"img_size": 9}, r"net\.yaml: img_size = 9: must be a multiple of 4.*\(nearest: 8\)"),
    ({"score_on": "val"}, r"val_split = 'val': digits has train and test.*\(nearest: test\)"),
    ({"score_on": "train"}, "val_split = 'train': should be 'val' or 'test'"),
    ({"model": ""}, "MODEL: is empty"),
    ({"init_from": ""}, "--init-from: is empty"),
    ({"init_from": "gone"}, r"gone: is no exported folder: it has no model\.safetensors"),
    (
        {"recipe": Recipe(mixed_depth=True), "model": "vit_16b", "img_size": 32},
        r"recipe\.mixed_depth = true: mixed depth needs recursion",
    ),
    (
        {"recipe": "deepvit_penalty", "model": "mixer_b16", "img_size": 32},
        r"recipe\.similarity_penalty\.weight = 0\.1: .*no two maps",
    ),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_a_mistake_is_one_line(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(model_file.parent)
    with pytest.raises(VitnasError, match=message) as caught:
        make_plan(**{"model": model_file, **options})
    assert "\n" not in str(caught.value)


def test_a_plan_takes_no_torch(model_file: Path) -> None:
    code = (
        "import sys; from vitnas.training.plan import make_plan\n"
        f"make_plan({str(model_file)!r}, recipe='sret_t')\n"
        "print(*({'torch', 'timm', 'ray', 'optuna', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
