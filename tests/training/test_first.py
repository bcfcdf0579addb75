"""First weights: what is taken from a folder or from timm, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from torch import nn

import vitnas
from tests.training.conftest import fill_folder
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import load_config
from vitnas.config.recipe import Recipe
from vitnas.errors import ConfigError, DataError, VitnasError
from vitnas.exported.convert import in_our_words
from vitnas.exported.folder import write_classes
from vitnas.exported.grafts import graft_named
from vitnas.exported.hub import read_preprocessing
from vitnas.exported.read import load
from vitnas.training.first import start_from
from vitnas.training.plan import Plan, make_plan
from vitnas.training.proxy import fresh_model
from vitnas.training.start import FromTimm
from vitnas.training.train import train_network

CPU = torch.device("cpu")
NAME = "vit_tiny_patch16_224"
OPTIONS: dict[str, Any] = {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3}
OPTIONS |= {"depth": 2, "in_chans": 1}


@pytest.fixture
def graft(tmp_path: Path) -> Path:
    fields = {"mixer": "cska", "blocks": "1", "reattention_blocks": 1}
    graft_named(NAME, fields, {**OPTIONS, "num_classes": 5}, to=tmp_path / "graft", seed=4)
    return tmp_path / "graft"


def begun(plan: Plan, start: Path | FromTimm, **known: Any) -> tuple[nn.Module, str]:
    """A network with its first weights, and what is said of them."""
    model = fresh_model(plan.config, 0, CPU)
    return model, start_from(model, plan.config, start, **known).line


def trained(model_file: Path, to: Path) -> Path:
    recipe = Recipe.model_validate({"epochs": 1, "train_fraction": 0.1, "batch_size": 64})
    return train_network(make_plan(model_file, recipe=recipe), to, device="cpu")


def test_classes_of_other_names_are_other_classes(model_file: Path, tmp_path: Path) -> None:
    old = trained(model_file, tmp_path / "old")
    write_classes(old, [f"leaf {number}" for number in range(10)])
    config = load_config(old / "config.yaml")
    for names, ends in (
        ([], "old"),
        ([f"leaf {number}" for number in range(10)], "old"),
        ([f"tree {number}" for number in range(10)], "without its classifier of 10 other classes"),
    ):
        model = fresh_model(config, 0, CPU)
        assert start_from(model, config, old, names).line.endswith(ends)


def test_a_graft_gives_its_weights_to_other_classes_at_another_size(graft: Path) -> None:
    plan = make_plan(graft, img_size=32, init_from=graft)
    assert (plan.config.image_hw, plan.config.num_classes, plan.before) == ((32, 32), 10, 5)
    model, line = begun(plan, graft)
    assert line == f"starts from the weights of {graft} without its classifier of 5 other classes"
    before, after = load(graft).state_dict(), model.state_dict()
    assert torch.equal(
        before["blocks.1.attn.mixer.qv.weight"], after["blocks.1.attn.mixer.qv.weight"]
    )
    assert after["blocks.1.attn.mixer.key.weight"].shape == (3 * 65, 8, 3, 3)
    fresh = fresh_model(plan.config, 0, CPU).state_dict()
    assert all(torch.equal(after[name], fresh[name]) for name in ("head.weight", "head.bias"))


def test_timms_weights_go_into_all_that_is_not_grafted(graft: Path, tmp_path: Path) -> None:
    """timm itself loads the file: it drops the classifier and adds the channels up."""
    torch.manual_seed(7)
    host = timm.create_model(NAME, **{**OPTIONS, "in_chans": 3, "num_classes": 1000})
    file = tmp_path / "weights.pth"
    torch.save(host.state_dict(), file)
    text = f"timm:{NAME}:{file}"
    plan = make_plan(graft, init_from=text)
    assert plan.init_from == FromTimm(NAME, str(file))
    model, line = begun(plan, FromTimm(NAME, str(file)))
    assert (
        line == f"starts from the weights of {text} without its classifier of 1,000 other classes"
    )
    theirs, ours = host.state_dict(), model.state_dict()
    query, _, value = theirs["blocks.1.attn.qkv.weight"].chunk(3)
    assert torch.equal(ours["blocks.1.attn.mixer.qv.weight"], torch.cat([query, value]))
    summed = theirs["patch_embed.proj.weight"].sum(1, keepdim=True)
    torch.testing.assert_close(ours["patch_embed.proj.weight"], summed)
    assert torch.equal(ours["blocks.0.mlp.fc1.weight"], theirs["blocks.0.mlp.fc1.weight"])
    assert plan.identity()["init_from"].startswith(f"{NAME} ")


def test_what_the_weights_know_pixels_by_comes_with_them(graft: Path, model_file: Path) -> None:
    plan = make_plan(graft)
    config = json.loads((graft / "config.json").read_text())
    first = start_from(fresh_model(plan.config, 0, CPU), plan.config, graft)
    assert tuple(first.stated["mean"]) == tuple(config["pretrained_cfg"]["mean"])
    assert tuple(first.stated["std"]) == tuple(config["pretrained_cfg"]["std"])


@pytest.mark.slow
def test_published_weights_are_trained_further_on_pixels_as_they_know_them(tmp_path: Path) -> None:
    """timm's mean and deviation, and not those of the images; the folder has them, too."""
    fill_folder(tmp_path / "images")
    options = {**OPTIONS, "in_chans": 3, "num_classes": 3}
    design = GraftFile.model_validate({"model": NAME, "options": options, "grafts": []})
    torch.save(timm.create_model(NAME, **options).state_dict(), tmp_path / "host.pth")
    recipe = Recipe.model_validate({"epochs": 1, "batch_size": 4})

    def mean(to: str, start: str | None) -> tuple[float, ...]:
        plan = make_plan(design, str(tmp_path / "images"), recipe, init_from=start)
        how = read_preprocessing(train_network(plan, tmp_path / to, device="cpu"), 3)
        assert how is not None
        return how.mean

    stated = timm.get_pretrained_cfg(NAME)
    assert stated is not None
    assert mean("tuned", f"timm:{NAME}:{tmp_path / 'host.pth'}") == pytest.approx(stated.mean)
    assert mean("fresh", None) != pytest.approx(stated.mean, abs=0.01)


def test_a_file_that_holds_no_weights_is_one_line(graft: Path, tmp_path: Path) -> None:
    (tmp_path / "weights.pth").write_text("hello")
    start = FromTimm(NAME, str(tmp_path / "weights.pth"))
    with pytest.raises(DataError, match=r"weights\.pth: it is damaged, or no file of weights$"):
        begun(make_plan(graft), start)


@pytest.mark.slow
def test_timms_weights_go_into_a_model_of_the_zoo(tmp_path: Path) -> None:
    """BViT without broad attention is timm's DeiT, whose three channels and size are fitted."""
    host = timm.create_model("deit_tiny_patch16_224")
    torch.save(host.state_dict(), tmp_path / "deit.pth")
    start = FromTimm("deit_tiny_patch16_224", str(tmp_path / "deit.pth"))
    model, line = begun(make_plan("bvit_5m", "digits", img_size=32), start)
    assert line.endswith("deit.pth without its classifier of 1,000 other classes")
    ours = dict(model.named_parameters())
    _, theirs = in_our_words(host)
    same = [n for n, p in theirs.named_parameters() if n in ours and torch.equal(p, ours[n])]
    assert len(same) == len(ours) - 4  # kernel of the stem, positions, weight and bias of the head


MISTAKES: list[tuple[str, type[VitnasError], str]] = [
    ("timm:vit_small_patch16_224", ConfigError, f"another network .*{NAME}.*nearest: timm:{NAME}"),
    (f"timm:{NAME}:PICKLE", DataError, rf"{NAME}: timm cannot get .*bad\.pth"),
    (f"timm:{NAME}:OTHER", DataError, rf"{NAME}: timm cannot get .*other\.pth"),
    (f"timm:{NAME}:GONE", DataError, r"gone\.pth: no such file"),
    ("DEEPER", ConfigError, "weights of another network"),
    ("DAMAGED", DataError, r"model\.safetensors: not a safetensors file"),
    ("OURS", ConfigError, r"ours: holds another network"),
]


@pytest.mark.parametrize(("start", "kind", "said"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_one_line_and_nothing_is_written(
    start: str, kind: type[VitnasError], said: str, graft: Path, tmp_path: Path, model_file: Path
) -> None:
    places = {"PICKLE": "bad.pth", "OTHER": "other.pth", "GONE": "gone.pth"}
    for word, name in places.items():
        start = start.replace(word, str(tmp_path / name))
    (tmp_path / "bad.pth").write_bytes(b"\x80\x04cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    torch.save({"blocks.0.norm1.weight": torch.ones(3)}, tmp_path / "other.pth")
    if start == "DEEPER":
        options = {**OPTIONS, "depth": 3, "num_classes": 5}
        graft_named(NAME, {"mixer": "cska", "blocks": "1"}, options, to=tmp_path / "deep")
        start = str(tmp_path / "deep")
    elif start == "DAMAGED":
        graft_named(NAME, {"mixer": "cska"}, OPTIONS, to=tmp_path / "damaged")
        (tmp_path / "damaged" / "model.safetensors").write_bytes(b"\x80\x04 a pickle")
        start = str(tmp_path / "damaged")
    elif start == "OURS":
        start = str(trained(model_file, tmp_path / "ours"))
    with pytest.raises(kind, match=said) as caught:
        train_network(make_plan(graft, init_from=start), tmp_path / "out", device="cpu")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("out*"))


def test_weights_that_cannot_be_fetched_are_one_line(
    graft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=rf"{NAME}: timm cannot get its weights: ") as caught:
        begun(make_plan(graft), FromTimm(NAME))
    assert "\n" not in str(caught.value)


def test_a_graft_does_not_start_a_network_of_ours(graft: Path, model_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"graft: holds another network"):
        begun(make_plan(model_file), graft)
    assert load(graft)(torch.zeros(1, 1, 16, 16)).shape == (1, 5)
    assert vitnas.load(graft).num_classes == 5
