"""A grafted network by name, as text, as a folder and back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from torch import nn
from typer.testing import CliRunner

import vitnas
from vitnas.cli import app, main
from vitnas.errors import ConfigError, DataError, RunError, VitnasError
from vitnas.exported.grafts import graft_named, save_graft
from vitnas.exported.read import load
from vitnas.nn.graft import graft

NAME = "vit_tiny_patch16_224"
OPTIONS: dict[str, Any] = {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3}
OPTIONS |= {"depth": 4, "num_classes": 5}
IMAGES = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model() -> nn.Module:
    model: nn.Module = timm.create_model(NAME, **OPTIONS)
    graft(model, mixer="cska", blocks="last:2", reattention_blocks=1)
    graft(model, broad={"gamma": 0.4})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.rand_like(parameter))
    return model


@pytest.fixture
def folder(model: nn.Module, tmp_path: Path) -> Path:
    return save_graft(model, tmp_path / "grafted", NAME, **OPTIONS)


def test_the_folder_is_the_network(model: nn.Module, folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "config.json",
        "graft.yaml",
        "model.safetensors",
    ]
    loaded = vitnas.load(folder)
    assert not loaded.training
    assert torch.equal(loaded(IMAGES), model.eval()(IMAGES))
    assert loaded.grafts == model.grafts
    assert repr(str(folder)) in (folder / "README.md").read_text()


def test_saving_leaves_the_network_in_its_mode(model: nn.Module, tmp_path: Path) -> None:
    model.train()
    model.blocks[0].eval()
    save_graft(model, tmp_path / "grafted", NAME, **OPTIONS)
    assert model.training
    assert not model.blocks[0].training


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({**OPTIONS, "depth": 5}, "is another network"),
        ({**OPTIONS, "global_pool": "avg", "fc_norm": False}, "is another network"),
        ({}, "is another network"),
        ({**OPTIONS, "pretrained": True}, "options.pretrained = true: unknown key"),
    ],
)
def test_what_would_not_come_back_is_not_written(
    model: nn.Module, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        save_graft(model, tmp_path / "grafted", NAME, **options)
    assert not list(tmp_path.iterdir())


def test_a_network_without_grafts_is_no_graft(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="grafts"):
        save_graft(timm.create_model(NAME, **OPTIONS), tmp_path / "grafted", NAME, **OPTIONS)


def test_a_folder_with_something_in_it_is_left_alone(model: nn.Module, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(RunError, match="not empty"):
        save_graft(model, folder, NAME, **OPTIONS)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        ("cska", "csk", ConfigError, r"graft.yaml: grafts\[0\].mixer = 'csk'.*nearest: cska"),
        ("last:2", "last:9", ConfigError, "graft.yaml: blocks = 'last:9': the network has 4"),
        ("patch16_224", "patch16_22", ConfigError, "graft.yaml: model = .*nearest: vit_tiny"),
        ("depth: 4", "depth: 5", ConfigError, "weights of another network"),
        (
            "depth: 4",
            "dept: 4",
            ConfigError,
            "graft.yaml: options.dept = 4: unknown key .nearest: depth",
        ),
        ("gamma: 0.4", "gamma: !!python/name:os.system", ConfigError, "graft.yaml: line"),
    ],
)
def test_a_damaged_folder_says_where(
    folder: Path, old: str, new: str, kind: type[VitnasError], said: str
) -> None:
    file = folder / "graft.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(kind, match=said) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def test_damaged_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"model\.safetensors"):
        vitnas.load(folder)


def test_named(tmp_path: Path) -> None:
    fields = {"mixer": "ska", "blocks": "0-1", "broad": {"gamma": 0.4}}
    made = graft_named(NAME, fields, OPTIONS, seed=3, to=tmp_path / "a")
    again = graft_named(NAME, fields, OPTIONS, seed=3)
    assert torch.equal(made.model.eval()(IMAGES), again.model.eval()(IMAGES))
    assert torch.equal(vitnas.load(tmp_path / "a")(IMAGES), made.model(IMAGES))
    dim, tokens = 24, 17
    lost = 2 * (dim * (dim + 1) - tokens * dim)
    assert made.before.num_params - made.after.num_params == lost
    text = made.text().splitlines()
    assert text[0] == f"{NAME}: VisionTransformer"
    assert text[1] == "  blocks.0.attn  Attention -> ska, 17 tokens"
    assert text[3].startswith("  broad attention, gamma 0.4, over 4 (blocks.0.attn, blocks.1")
    assert text[4] == "  left as they were: 2 (blocks.2.attn, blocks.3.attn)"


@pytest.mark.slow
def test_command(tmp_path: Path) -> None:
    words = ["graft", NAME, "--mixer", "ska", "--blocks", "6-11", "--reattention", "2"]
    words += ["--img-size", "32", "--num-classes", "10", "--to", str(tmp_path / "a")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for said in ("blocks.6.attn", "blocks.5.attn", "re-attention", "parameters", "FLOPs"):
        assert said in result.stdout
    assert vitnas.load(tmp_path / "a")(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "MODEL: is required"),
        ([NAME], "nothing to graft"),
        ([NAME, "--mixer", "sak"], "mixer = 'sak': .*nearest: ska"),
        ([NAME, "--mixer", "ska", "--blocks", "9-12"], "there is no block '9-12'"),
        (["vit_tiny_patch16_22", "--mixer", "ska"], "nearest: vit_tiny_patch16_224"),
        (["resnet18", "--mixer", "ska"], "model = 'ResNet'"),
        (
            [NAME, "--mixer", "ska", "--img-size", "8"],
            "img_size = 8: .* has no token",
        ),
    ],
)
def test_command_in_error(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "a"
    with pytest.raises(SystemExit) as caught:
        main(["graft", *words, "--to", str(to)])
    err = capsys.readouterr().err
    assert caught.value.code == 2
    assert len(err.splitlines()) == 1
    assert re.search(said, err)
    assert not to.exists()
