"""Checkpoints of SKA's CvT for small images give that code's scores, through the real command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import vitnas
from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.small_cvt import SmallCvt
from tests.nn.zoo.weights.through import (
    check_scores,
    check_where_it_will_run,
    converted,
    refused,
)
from vitnas.nn.graft.families import mixers_of

SIZES: dict[str, Any] = {"widths": (16, 24, 36), "heads": (1, 3, 6), "depths": (1, 2, 2)}
VALUES = (16, 4, 1)
"""At 32 px: 8x8, 4x4 and 2x2 tokens, whose values are convolved with stride 2."""


def code_of(kind: str, **more: Any) -> nn.Module:
    values = () if kind == "attention" else VALUES
    return filled(SmallCvt(**{**SIZES, "kind": kind, "values": values, **more}))


@pytest.mark.parametrize("class_token", [True, False])
@pytest.mark.parametrize(("kind", "mixer"), [("stu", "ska"), ("cstu", "cska")])
def test_static_keys(kind: str, mixer: str, class_token: bool) -> None:
    code = code_of(kind, class_token=class_token)
    ours = converted(code, "ska_small")
    check_scores(code, ours, 32)
    assert set(mixers_of(ours).values()) == {mixer}
    assert len(mixers_of(ours)) == 5


def test_attention_has_heads_of_64() -> None:
    code = code_of("attention", widths=(64, 128), heads=(1, 2), depths=(1, 1), channels=1)
    ours = converted(code, "ska_small", None, "--img-size", "24")
    check_scores(code, ours, 24, channels=1)
    assert (ours.image_hw, ours.in_chans) == ((24, 24), 1)
    assert set(mixers_of(ours).values()) == {"ConvAttention"}


@pytest.mark.slow
def test_the_folder_is_a_grafts() -> None:
    converted(code_of("stu"), "ska_small")
    assert "ska_small_cvt + ska in all" in Path("net/README.md").read_text()
    assert Path("net/graft.yaml").is_file()
    assert not Path("net/config.yaml").exists()


def test_a_map_of_one_column_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    converted(code_of("cstu"), "ska_small")
    assert "each token gets the sum of its values" in capsys.readouterr().out
    assert "each token gets the sum of its values" in Path("net/README.md").read_text()


def test_what_the_code_cannot_run_is_refused() -> None:
    code = SmallCvt(**SIZES, kind="cstu", values=(16, 4, 4))
    said = refused(code.state_dict(), "ska_small")
    assert "stage2.blocks.0.attn.k2 is for maps of 4 columns and 5 values" in said


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ({}, ("--img-size", "64"), "--img-size = 64: these weights are for images of 32x32"),
        ({"stage1.blocks.0.attn.k": None}, (), "1 missing .stage1.blocks.0.attn.k"),
        ({"stage1.blocks.0.attn.k": (3, 9, 8)}, (), r"k is \[3, 9, 8\] for \[3, 4, 8\]"),
        ({"stage0.cls_token": (1, 1, 16)}, (), "unexpected .stage0.cls_token"),
    ],
)
def test_other_shapes_are_refused(change: dict[str, Any], more: tuple[str, ...], said: str) -> None:
    state = dict(code_of("stu").state_dict())
    for name, shape in change.items():
        state.pop(name, None)
        if shape:
            state[name] = torch.zeros(shape)
    refused(state, "ska_small", *more, match=said)


def test_the_error_of_another_code_names_this_one() -> None:
    refused(code_of("stu").state_dict(), "sret", match="they fit --from ska_small")


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "mixer"), [("stu", "ska"), ("cstu", "cska")])
def test_the_folder_is_checked_where_it_will_run(kind: str, mixer: str) -> None:
    check_where_it_will_run(code_of(kind, depths=(1, 1, 1), channels=1, classes=10), mixer)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "widths"),
    [("attention", (64, 192, 384)), ("stu", (64, 198, 402)), ("cstu", (64, 192, 384))],
)
def test_at_full_size(kind: str, widths: tuple[int, ...]) -> None:
    code = code_of(kind, widths=widths, heads=(1, 3, 6), depths=(1, 2, 10), classes=10)
    check_scores(code, converted(code, "ska_small"), 32)


@pytest.mark.slow
def test_a_program_runs_without_vitnas() -> None:
    code = code_of("stu")
    converted(code, "ska_small", None, "--formats", "pt2")
    again = vitnas.load("net")
    program = torch.export.load("net/model.pt2").module()
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(program(images), again(images), rtol=1e-4, atol=1e-4)
