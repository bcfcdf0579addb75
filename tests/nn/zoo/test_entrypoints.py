"""The papers' models among timm's."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import timm
import torch

import vitnas  # noqa: F401
from vitnas.errors import ConfigError
from vitnas.nn.zoo import zoo_config, zoo_names
from vitnas.nn.zoo.entrypoints import ANY, register, timm_names


# The tests of this process import vitnas first.
@pytest.mark.slow
@pytest.mark.parametrize("first", ["timm", "vitnas"])
def test_either_order_of_imports(first: str) -> None:
    code = (
        f"import warnings; warnings.simplefilter('error', UserWarning); import {first}\n"
        "import vitnas, timm\n"
        "print(timm.is_model('sret_t'), timm.is_model('vitnas_caformer_s18'))\n"
        "print(timm.models.__spec__.loader is timm.models.__loader__)\n"
        "print(timm.model_entrypoint('caformer_s18').__module__)\n"
        "print(timm.create_model('sret_t', device='meta').__class__.__module__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules = ["timm.models.metaformer", "vitnas.nn.model"]
    assert done.stdout.split() == ["True", "True", "True", *modules]


def test_only_names_that_timm_has_get_a_prefix() -> None:
    assert list(timm_names) == zoo_names()
    prefixed = {name for name, public in timm_names.items() if public != name}
    assert prefixed == {"caformer_s18", "convformer_s18", "caformer_b36"}
    assert all(timm_names[name] == f"vitnas_{name}" for name in prefixed)
    assert set(timm.list_models("*deepvit*")) == {n for n in zoo_names() if "deepvit" in n}
    assert set(timm.list_models(module="entrypoints")) == {ANY, *timm_names.values()}


def test_any_network_is_built_from_its_fields() -> None:
    fields = {
        "img_size": 16,
        "in_chans": 1,
        "num_classes": 2,
        "stem": {"kind": "patch", "stride": 4},
    }
    stages = [{"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8}]
    model = timm.create_model(ANY, **fields, stages=stages, drop_rate=0.1)
    assert model(torch.randn(2, 1, 16, 16)).shape == (2, 2)
    assert model.config.drop_rate == 0.1
    with pytest.raises(ConfigError, match=r"stages: is required"):
        timm.create_model(ANY)
    with pytest.raises(ConfigError, match=r"stagess = .*unknown option \(nearest: stages\)"):
        timm.create_model(ANY, stagess=stages)


def test_registering_twice_changes_nothing() -> None:
    before = timm.list_models()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register()
    assert timm.list_models() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo_names())
def test_timm_builds_it_and_knows_its_input(name: str) -> None:
    config = zoo_config(name)
    with torch.device("meta"):
        model = timm.create_model(timm_names[name])
    assert model.config == config
    cfg = model.pretrained_cfg
    assert cfg["input_size"] == (3, *config.image_hw)
    assert cfg["interpolation"] == "bicubic"
    assert cfg["fixed_input_size"]
    assert cfg["pool_size"] == (config.grids[-1] if len(config.stages) > 1 else None)
    modules = dict(model.named_modules())
    assert modules[cfg["first_conv"]].in_channels == 3
    assert modules[cfg["classifier"]].out_features == config.num_classes


@pytest.mark.parametrize("name", ["caformer_s18", "convformer_s18", "caformer_b36"])
def test_timm_is_told_of_its_own_metaformers_what_it_says_of_them(name: str) -> None:
    ours, theirs = (timm.get_pretrained_cfg(n) for n in (timm_names[name], name))
    for word in ("input_size", "pool_size", "crop_pct", "interpolation", "mean", "std"):
        assert getattr(ours, word) == getattr(theirs, word), word


@pytest.mark.parametrize(
    ("name", "crop_pct", "mean"),
    [
        ("sret_t", 0.875, 0.485),
        ("sret_t_384", 0.875, 0.485),
        ("bvit_5m", 0.875, 0.485),
        ("deepvit_s", 0.9, 0.5),
        ("vit_16b", 0.9, 0.5),
        ("deepvit_l_384", 1.0, 0.5),
        ("skaformer_b36", 1.0, 0.485),
        ("vit_small_32", 1.0, 0.485),
    ],
)
def test_images_are_prepared_as_in_the_papers_code(name: str, crop_pct: float, mean: float) -> None:
    model = timm.create_model(name, device="meta")
    data = timm.data.resolve_data_config(model=model)
    assert (data["crop_pct"], data["mean"][0]) == (crop_pct, mean)
    assert data["input_size"][1:] == model.image_hw


def test_options() -> None:
    model = timm.create_model("sret_t", num_classes=10, img_size=384, drop_rate=0.0, depth=None)
    assert model(torch.randn(1, 3, 384, 384)).shape == (1, 10)
    model = timm.create_model(
        "deepvit_16b",
        in_chans=1,
        img_size=(32, 64),
        drop_path_rate=0.1,
        global_pool="avg",
        reattention_blocks=3,
    ).eval()
    assert model(torch.randn(1, 1, 32, 64)).shape == (1, 1000)
    assert (model.config.drop_path_rate, model.config.global_pool) == (0.1, "avg")
    assert model.config.reattention_plan == (3,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_clases": 10}, r"num_clases.*nearest: num_classes"),
        ({"drop_path": 0.1}, r"drop_path.*nearest: drop_path_rate"),
        ({"drop_rate": 1.5}, r"drop_rate = 1.5"),
        ({"num_classes": -1}, r"num_classes = -1"),
        ({"features_only": True, "feature_cls": "list"}, r"feature_cls = 'list'.*nearest: getter"),
        ({"img_size": 100}, r"img_size = 100.*nearest: 96"),
        ({"img_size": (224,)}, r"img_size\[1\]: is required"),
        ({"img_size": 96, "groups": "[8,2][5,1][1,1]"}, r"stages\[1\].groups.*nearest: \[4, 1\]"),
        ({"global_pool": "token"}, "class_token"),
    ],
)
def test_no_option_is_swallowed(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        timm.create_model("sret_t", **options)


def test_a_saved_state_comes_back_through_timm(tmp_path: Path) -> None:
    torch.manual_seed(0)
    options = {"num_classes": 5, "img_size": 32, "groups": "[8,2][4,1][1,1]"}
    model = timm.create_model("sret_t", **options).eval()
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    again = timm.create_model("sret_t", checkpoint_path=tmp_path / "weights.pt", **options).eval()
    images = torch.randn(1, 3, 32, 32)
    assert torch.equal(again(images), model(images))
    source = {"file": str(tmp_path / "weights.pt"), "num_classes": 5}
    fewer = timm.create_model(
        "sret_t", pretrained=True, pretrained_cfg_overlay=source, **{**options, "num_classes": 3}
    )
    assert fewer(images).shape == (1, 3)
    assert torch.equal(fewer.state_dict()["pos_embed"], model.state_dict()["pos_embed"])
