"""Checkpoints of the papers' own code give that code's scores, through the real command."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import yaml
from safetensors.torch import save_file
from timm.models import metaformer as timm_mf
from torch import Tensor, nn

import vitnas
from tests.nn.zoo.codes import metaformer as mf
from tests.nn.zoo.codes.bvit import Bvit
from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.deepvit import Deepvit
from tests.nn.zoo.codes.metaformer import Metaformer
from tests.nn.zoo.codes.sret import Sret
from vitnas.cli import main
from vitnas.errors import VitnasError
from vitnas.nn import build_model
from vitnas.nn.zoo import zoo_config, zoo_names
from vitnas.nn.zoo.weights import from_timm

MHSA = {"token_mixer": "mhsa"}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def converted(
    code: nn.Module, layout: str, model: dict[str, Any] | str | None = None, *more: str
) -> nn.Module:
    """What `vitnas convert` makes of the code's checkpoint, loaded again."""
    torch.save({"model": code.state_dict(), "epoch": 3}, "a.pth")
    options = ["--from", layout, "--to", "net", *more]
    if isinstance(model, dict):
        Path("small.yaml").write_text(yaml.safe_dump(model))
        model = "small.yaml"
    options += ["--model", model] if model else []
    with pytest.raises(SystemExit) as ended:
        main(["convert", "a.pth", *options])
    assert ended.value.code == 0
    return vitnas.load("net")


def check_scores(code: nn.Module, ours: nn.Module, side: int, channels: int = 3) -> None:
    """Equal to 1e-5 as they are, and in double precision to rounding: no epsilon is off."""
    images = torch.randn(2, channels, side, side, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = code(images)
        assert expected.std() > 0.05  # else equal scores would say little
        torch.testing.assert_close(ours(images), expected, rtol=1e-5, atol=1e-5)
        exact, wanted = ours.double()(images.double()), code.double()(images.double())
    torch.testing.assert_close(exact, wanted, rtol=1e-9, atol=1e-9)


# SReT


def small_sret(groups: str, **fields: Any) -> dict[str, Any]:
    ratios = {"mlp_ratio": 2.4, "nll_ratio": 1.5}
    stages = [
        MHSA | ratios | {"depth": depth, "embed_dim": width, "num_heads": heads}
        for depth, width, heads in ((2, 16, 2), (1, 32, 4))
    ]
    stem = {"kind": "conv", "stride": 8}
    return {"stem": stem, "groups": groups, "residual": "lrc", "stages": stages, **fields}


def sret(groups: list[tuple[int, int]], **options: Any) -> Sret:
    return filled(Sret([16, 32], [2, 4], [2, 1], groups, ffn=2.4, nll=1.5, **options))


def test_sret() -> None:
    """Windows in the first pass, all tokens in the second; ten classes, 64 px, one channel."""
    code = sret([(8, 1), (4, 1)], img_size=64, classes=10, channels=1)
    ours = converted(code, "sret", small_sret("[8,1][4,1]"))
    check_scores(code, ours, 64, channels=1)
    assert ours.config.permute == "second"
    config = ours.config
    assert (config.num_classes, config.in_chans, config.img_size) == (10, 1, 64)


def test_sret_with_our_permutations(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own are drawn anew at every call; in their place, ours of eval give our scores."""
    code = sret([(8, 2), (4, 2)], img_size=64)
    ours = converted(code, "sret", small_sret("[8,2][4,2]"))
    assert "permutes the tokens of the second pass anew" in capsys.readouterr().out
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert not torch.equal(code(images), code(images))

    def order(stage: int, block: int, tokens: int) -> Tensor:
        found: Tensor = ours.stages[stage].blocks[block].block.mixer.shuffles["1"].order
        assert len(found) == tokens
        return found

    code.order = order
    check_scores(code, ours, 64)


def test_a_block_of_sret_that_was_saved_with_two_values_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = sret([(1, 1), (1, 1)])
    state = {name: value.clone() for name, value in code.state_dict().items()}
    state["transformers.0.blocks.2.mlp.fc1.bias"] += 1e-3
    torch.save(state, "a.pth")
    Path("m.yaml").write_text(yaml.safe_dump(small_sret("[1,1][1,1]")))
    with pytest.raises(SystemExit) as ended:
        main(["convert", "a.pth", "--from", "sret", "--model", "m.yaml", "--to", "net"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "vitnas: a.pth: transformers.0.blocks.0.mlp.fc1.bias and "
        "transformers.0.blocks.2.mlp.fc1.bias are one tensor in this layout and have different "
        "values here\n"
    )
    assert not Path("net").exists()


def test_a_block_of_sret_that_was_saved_once_is_enough() -> None:
    """As safetensors' own `save_model` does, which leaves second names out."""
    code = sret([(1, 1), (1, 1)])
    state = {
        name: value
        for name, value in code.state_dict().items()
        if not any(f"blocks.{at}." in name for at in (2, 6))
    }
    save_file(state, "a.safetensors")
    Path("m.yaml").write_text(yaml.safe_dump(small_sret("[1,1][1,1]")))
    with pytest.raises(SystemExit):
        main(["convert", "a.safetensors", "--from", "sret", "--model", "m.yaml", "--to", "net"])
    check_scores(code, vitnas.load("net"), 32)


def full_sret(groups: list[tuple[int, int]], **options: Any) -> Sret:
    code = Sret(
        [64, 128, 256], [2, 4, 8], [2, 5, 3], groups, ffn=3.6, nll=1.0, img_size=224, **options
    )
    return filled(code)


def test_groups_of_sret_are_asked_for_or_read_from_the_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """SReT-T and SReT-*T have the same shapes; DeiT's checkpoints say what was trained."""
    state = full_sret([(1, 1)] * 3).state_dict()
    torch.save({"model": state, "args": Namespace(model="SReT_T_wo_slice", lr=1e-3)}, "b.pth")
    torch.save({"model": state, "args": Namespace(model="mine")}, "a.pth")
    with pytest.raises(SystemExit) as ended:
        main(["convert", "a.pth", "--from", "sret", "--to", "net"])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert "--model: sret_t, sret_star_t, sret_t_g8_8_4_4, sret_t_g16_2_4_2 have these" in line
    with pytest.raises(SystemExit):
        main(["convert", "b.pth", "--from", "sret", "--to", "net"])
    assert vitnas.load_config("net/config.yaml").name == "sret_star_t"


@pytest.mark.nightly
def test_sret_t_at_full_size() -> None:
    code = full_sret([(1, 1)] * 3, classes=1000)
    check_scores(code, converted(code, "sret", "sret_star_t"), 224)


# DeepViT


def small_deepvit(**fields: Any) -> dict[str, Any]:
    stage = MHSA | {"depth": 3, "embed_dim": 48, "num_heads": 12, "mlp_ratio": 3.0}
    return {"class_token": True, "stages": [stage], "reattention_blocks": 2, **fields}


def test_deepvit() -> None:
    code = filled(Deepvit(48, 3, reattention=2, img_size=64, classes=10, channels=1))
    ours = converted(code, "deepvit", small_deepvit())
    check_scores(code, ours, 64, channels=1)
    config = ours.config
    assert (config.num_classes, config.in_chans, config.img_size) == (10, 1, 64)


def test_deepvit_with_doubled_branches_and_scaled_maps() -> None:
    code = filled(Deepvit(48, 3, 2, cnn=True, adjust=0.5, scale_maps=True, img_size=64))
    fields = {
        "stem": {"kind": "deepvit", "stride": 16},
        "branch_scale": 2.0,
        "reattention": {"scale": 0.5},
    }
    check_scores(code, converted(code, "deepvit", small_deepvit(**fields)), 64)


@pytest.mark.nightly
def test_deepvit_s_at_full_size() -> None:
    code = filled(Deepvit(396, 16, 5, cnn=True, adjust=0.5, scale_maps=True, img_size=224))
    ours = converted(code, "deepvit")
    assert ours.config.name == "deepvit_s"
    assert (ours.config.branch_scale, ours.config.norm_eps) == (2.0, 4e-6)
    check_scores(code, ours, 224)


# BViT


def small_bvit(**fields: Any) -> dict[str, Any]:
    stage = MHSA | {"depth": 3, "embed_dim": 48, "num_heads": 3, "mlp_ratio": 2.0}
    return {"class_token": True, "stages": [stage], "broad": {"gamma": 1.0}, **fields}


def test_bvit(capsys: pytest.CaptureFixture[str]) -> None:
    """It halves the picture, so of 17 rows of its position table it uses the first five."""
    code = filled(Bvit(48, 3, 3, 96, img_size=64, classes=10))
    ours = converted(code, "bvit", small_bvit(img_size=64, stem={"kind": "bvit", "stride": 32}))
    check_scores(code, ours, 64)
    assert "rows 5 to 16 of pos_embedding are left out" in capsys.readouterr().out
    assert (ours.config.broad.gamma, ours.config.norm_eps) == (0.4, 1e-5)


def test_bvit_without_its_convolution_is_the_papers() -> None:
    code = filled(Bvit(48, 3, 3, 96, halved=False, img_size=64, channels=1))
    check_scores(code, converted(code, "bvit", small_bvit()), 64, channels=1)


@pytest.mark.nightly
@pytest.mark.parametrize(("more", "side"), [((), 224), (("--img-size", "448"), 448)])
def test_bvit_5m_at_full_size(more: tuple[str, ...], side: int) -> None:
    code = filled(Bvit(192, 12, 3, 768, img_size=224, classes=2))
    ours = converted(code, "bvit", None, *more)
    assert ours.config.name == "bvit_5m"
    check_scores(code, ours, side)


# MetaFormers


WIDTHS, DEPTHS = [32, 64, 96, 128], [1, 1, 2, 1]
MIXERS = {
    "caformer": [mf.SepConv, mf.SepConv, mf.Attention, mf.Attention],
    "convformer": [mf.SepConv] * 4,
    "skaformer": [mf.SepConv, mf.SepConv, mf.Stu, mf.Stu],
    "skaformer with queries": [mf.SepConv, mf.SepConv, mf.StuWithQuery, mf.Attention],
    "cskaformer": [mf.SepConv, mf.Cstu, mf.Attention, mf.Attention],
}


@pytest.mark.parametrize("name", sorted(MIXERS))
def test_metaformers_are_read_off_their_shapes(name: str) -> None:
    """No model is named, and the zoo has none of these sizes."""
    code = filled(Metaformer(WIDTHS, DEPTHS, MIXERS[name], img_size=64, classes=10, channels=1))
    keyed = "ska" in name
    more = () if keyed else ("--img-size", "64")  # only static keys say it
    ours = converted(code, "ska" if keyed else "caformer", None, *more)
    check_scores(code, ours, 64, channels=1)
    assert [stage.q_proj for stage in ours.config.stages][2] == (name != "skaformer")


def test_the_layout_of_ska_reads_plain_metaformers_too() -> None:
    code = filled(Metaformer(WIDTHS, DEPTHS, MIXERS["caformer"]))
    check_scores(code, converted(code, "ska", None, "--img-size", "64"), 64)


def official_s18(mixers: list[type[nn.Module]]) -> Metaformer:
    return filled(Metaformer([64, 128, 320, 512], [3, 3, 9, 3], mixers, 224, classes=1000))


@pytest.mark.nightly
def test_caformers_own_weights_are_those_that_timm_reads() -> None:
    code = official_s18(MIXERS["caformer"])
    theirs = timm.create_model("caformer_s18").eval()
    theirs.load_state_dict(timm_mf.checkpoint_filter_fn(code.state_dict(), theirs))
    ours = converted(code, "caformer")
    assert ours.config.name == "caformer_s18"
    through_timm = from_timm(theirs.state_dict(), build_model(zoo_config("caformer_s18")))
    for name, value in ours.state_dict().items():
        assert torch.equal(value, through_timm[name]), name


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["caformer", "skaformer", "cskaformer"])
def test_metaformers_at_full_size(name: str) -> None:
    code = official_s18(MIXERS[name])
    ours = converted(code, "ska" if "ska" in name else "caformer")
    expected = {"skaformer": "metaformer"}.get(name, f"{name}_s18")  # static keys in two stages
    assert ours.config.name == expected
    check_scores(code, ours, 224)


# timm


def test_timms_metaformers() -> None:
    """Of sizes that neither the zoo nor timm has; an epsilon of 1e-6 in the classifier's norm."""
    sizes = {"depths": DEPTHS, "dims": WIDTHS, "num_classes": 10, "in_chans": 1}
    mixers = [timm_mf.SepConv, timm_mf.SepConv, timm_mf.Attention, timm_mf.Attention]
    like_timms = {
        "norm_layers": [timm_mf.LayerNorm2dNoBias] * 2 + [timm_mf.LayerNormNoBias] * 2,
        "use_mlp_head": True,
        "res_scale_init_values": (None, None, 1.0, 1.0),
    }
    code = filled(timm_mf.MetaFormer(token_mixers=mixers, **sizes, **like_timms))
    check_scores(code, converted(code, "timm", None, "--img-size", "64"), 64, channels=1)


def test_timms_deit() -> None:
    code = filled(timm.create_model("deit_tiny_patch16_224", num_classes=10, img_size=96))
    ours = converted(code, "timm")
    assert (ours.config.name, ours.config.img_size) == ("deit_tiny", 96)
    check_scores(code, ours, 96)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["caformer_s18", "convformer_s18", "caformer_s36"])
def test_timms_metaformers_at_full_size(name: str) -> None:
    code = filled(timm.create_model(name))
    ours = converted(code, "timm")
    assert ours.config.name == (name if name in zoo_names() else "metaformer")
    check_scores(code, ours, 224)


@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        ("caformer_s18", "caformer_s18", {}),
        ("convformer_s18", "convformer_s18", {}),
        ("bvit_5m", "deit_tiny_patch16_224", {"broad": {}}),
    ],
)
def test_timms_fresh_networks_and_ours_give_one_score(
    name: str, theirs: str, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    other = timm.create_model(theirs).eval()
    model = build_model(zoo_config(name, **options)).eval()
    model.load_state_dict(from_timm(other.state_dict(), model))
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        assert (model(images) - other(images)).abs().max() < 1e-5


def test_timms_weights_of_another_network_are_named() -> None:
    state = timm.create_model("caformer_s18").state_dict()
    with torch.device("meta"):
        smaller = build_model(zoo_config("caformer_s18", num_classes=10))
        other = build_model(zoo_config("skaformer_s18"))
    with pytest.raises(VitnasError, match=r"2 of another shape or kind \(head.fc.fc2.weight"):
        from_timm(state, smaller)
    with pytest.raises(VitnasError, match=r"missing \(stages.2.blocks.0.token_mixer"):
        from_timm(state, other)
