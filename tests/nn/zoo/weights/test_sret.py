"""Checkpoints of SReT's code give that code's scores, through the real command."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import Tensor

import vitnas
from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.sret import Sret
from tests.nn.zoo.weights.through import BARE, MHSA, RUNS, check_scores, converted
from vitnas.cli import main


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
    assert "draws a new permutation for the second pass" in capsys.readouterr().out
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
        main(["convert", "a.pth", "--from", "sret", "--model", "m.yaml", "--to", "net", *BARE])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "vitnas: a.pth: transformers.0.blocks.0.mlp.fc1.bias and "
        "transformers.0.blocks.2.mlp.fc1.bias must be equal: this code shares one tensor\n"
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
        main(
            [
                "convert",
                "a.safetensors",
                "--from",
                "sret",
                "--model",
                "m.yaml",
                "--to",
                "net",
                *BARE,
            ]
        )
    check_scores(code, vitnas.load("net"), 32)


def full_sret(groups: list[tuple[int, int]], **options: Any) -> Sret:
    code = Sret(
        [64, 128, 256], [2, 4, 8], [2, 5, 3], groups, ffn=3.6, nll=1.0, img_size=224, **options
    )
    return filled(code)


@pytest.mark.slow
def test_groups_of_sret_are_asked_for_or_read_from_the_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """SReT-T and SReT-*T have the same shapes; DeiT's checkpoints say what was trained."""
    state = full_sret([(1, 1)] * 3).state_dict()
    torch.save({"model": state, "args": Namespace(model="SReT_T_wo_slice", lr=1e-3)}, "b.pth")
    torch.save({"model": state, "args": Namespace(model="mine")}, "a.pth")
    with pytest.raises(SystemExit) as ended:
        main(["convert", "a.pth", "--from", "sret", "--to", "net", *BARE])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert (
        "--model: is required: sret_t, sret_star_t, sret_t_g8_8_4_4, sret_t_g16_2_4_2 have" in line
    )
    with pytest.raises(SystemExit):
        main(["convert", "b.pth", "--from", "sret", "--to", "net", *BARE])
    assert vitnas.load_config("net/config.yaml").name == "sret_star_t"


@pytest.mark.nightly
def test_sret_t_at_full_size() -> None:
    code = full_sret([(1, 1)] * 3, classes=1000)
    check_scores(code, converted(code, "sret", "sret_star_t", *RUNS), 224)
