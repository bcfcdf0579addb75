"""Which part of a network an operator is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.made import CONFIG, small_file
from vitnas.deploy.graph import _place, _place_in_graft, counted, operators_of

onnx = pytest.importorskip("onnx")


@pytest.mark.parametrize(
    ("last", "mixer", "part"),
    [
        ("stages.0.blocks.0.mixer.depthwise", "dwconv", "dwconv"),
        ("stages.1.blocks.0.block.mixer.qkv", "mhsa", "mhsa"),
        ("stages.1.blocks.0.mixer.reattention.mix", "mhsa", "re-attention"),
        ("stages.1.blocks.0.norm1", None, "norms"),
        ("stages.1.blocks.0.mlp.fc1", None, "MLPs"),
        ("stages.1.blocks.0.nlls.0.mlp.fc1", None, "MLPs"),
        ("stages.1.blocks.0.block.residual2", None, "residuals"),
        ("stages.1.downsample.conv", None, "downsampling"),
        ("stem.conv.1", None, "stem"),
        ("broad", None, "broad"),
        ("head.norm", None, "norms"),
        ("head.classifier", None, "head"),
        ("", None, "other"),
    ],
)
def test_parts(last: str, mixer: str | None, part: str) -> None:
    names = last.split(".")
    inner = (".".join(names[: at + 1]) for at in range(len(names)))
    scopes = ("", *(scope for scope in inner if scope != "stages"))
    assert _place((*scopes, "linear"), CONFIG) == (mixer, part)
    assert _place(scopes, CONFIG) == (mixer, part)


@pytest.mark.parametrize(
    ("scope", "mixer", "part"),
    [
        ("blocks.1.attn.mixer.qv", "ska", "ska"),
        ("blocks.10.attn.qkv", "Attention", "Attention"),
        ("blocks.10.attn.attn_drop.reattention.norm", "Attention", "re-attention"),
        ("blocks.1.mlp.fc1", None, "MLPs"),
        ("blocks.1.norm1", None, "norms"),
        ("patch_embed.norm", None, "stem"),
        ("layers.1.downsample.reduction", None, "downsampling"),
        ("head", None, "head"),
        ("blocks.1", None, "other"),
    ],
)
def test_parts_of_a_graft(scope: str, mixer: str | None, part: str) -> None:
    mixers = {"blocks.1.attn": "ska", "blocks.10.attn": "Attention"}
    assert _place_in_graft(("", scope), mixers) == (mixer, part)


def test_the_operators_of_a_file(tmp_path: Path) -> None:
    found = operators_of(onnx.load(small_file(tmp_path / "model.onnx")), CONFIG)
    assert [(one.name, one.mixer, one.part) for one in found] == [
        ("flatten", None, "other"),
        ("mix", "dwconv", "dwconv"),
        ("softmax", "mhsa", "softmax"),
        ("classify", None, "head"),
    ]
    assert counted(found) == {"MatMul": 2, "Flatten": 1, "Softmax": 1}


def test_an_operator_without_a_note_is_from_where_its_input_is(tmp_path: Path) -> None:
    proto = onnx.load(small_file(tmp_path / "model.onnx"))
    del proto.graph.node[2].metadata_props[:]
    assert operators_of(proto, CONFIG)[2].mixer == "dwconv"
    proto.graph.node[1].metadata_props[0].value = "__import__('os')"
    assert operators_of(proto, CONFIG)[1].part == "other"
