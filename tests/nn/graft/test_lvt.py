"""LVT has the printed sizes, and its CSA is attention inside windows that overlap."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.nn.graft.networks import images, lvt
from vitnas.cost.operators import count_flops
from vitnas.errors import ConfigError
from vitnas.nn.graft.apply import graft
from vitnas.nn.graft.lvt import SIZES, ConvSelfAttention, LvtSize, grids_of
from vitnas.nn.graft.networks import build_network, classifier_names


@pytest.mark.slow
def test_sizes() -> None:
    """BViT prints 5.5 M and 0.9 G; LVT's code 0.9 G, and 3.4 M for the stages alone."""
    model: Any = build_network("lvt")
    assert _millions(model) == pytest.approx(5.522, abs=1e-3)
    assert _millions(model.stages) == pytest.approx(3.429, abs=1e-3)
    assert count_flops(model, (3, 224, 224)) / 1e9 == pytest.approx(0.897, abs=1e-3)
    assert [stage.grid for stage in model.stages] == [(56, 56), (28, 28), (14, 14), (7, 7)]


def _millions(module: nn.Module) -> float:
    return sum(parameter.numel() for parameter in module.parameters()) / 1e6


@pytest.mark.parametrize("grid", [(4, 6), (3, 5)])
def test_csa_window_by_window(grid: tuple[int, int]) -> None:
    torch.manual_seed(0)
    csa, (height, width) = ConvSelfAttention(6, 2), grid
    x = torch.randn(1, height * width, 6)
    picture, out = x[0].unflatten(0, grid), torch.zeros(height, width, 6)
    for row in range(0, height, 2):
        for column in range(0, width, 2):
            mean = picture[row : row + 2, column : column + 2].mean(dim=(0, 1))
            maps = (csa.attn(mean) * 3**-0.5).unflatten(0, (2, 9, 9)).softmax(dim=-1)
            places = [(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
            inside = [0 <= i < height and 0 <= j < width for i, j in places]
            values = torch.stack(
                [
                    picture[place] @ weight if there else torch.zeros(6)
                    for place, there, weight in zip(places, inside, csa.weight, strict=True)
                ]
            )
            mixed = (maps @ values.unflatten(1, (2, 3)).transpose(0, 1)).transpose(0, 1).flatten(1)
            for place, there, token in zip(places, inside, mixed, strict=True):
                if there:
                    out[place] = out[place] + token
    torch.testing.assert_close(csa(x, grid), csa.proj(out).flatten(0, 1)[None])


def test_rasa_is_one_attention_twice() -> None:
    block: Any = lvt().stages[1].blocks[0]
    x = torch.randn(2, 16, 16)
    first = nn.functional.silu(block.attn(x, (4, 4)))
    second = nn.functional.silu(block.attn(first + x, (4, 4)))
    torch.testing.assert_close(block.rasa(x), second)


def test_scores_are_the_class_tokens_and_half_of_the_highest() -> None:
    model: Any = lvt()
    scores = model(images())
    with torch.no_grad():
        model.aux_head.weight.zero_()
        model.aux_head.bias.copy_(torch.arange(5.0))
        ours = model(images())
        model.aux_head.bias.zero_()
    torch.testing.assert_close(ours - model(images()), (torch.arange(5.0) / 2).expand(2, 5))
    assert scores.shape == (2, 5)


def test_both_classifiers_depend_on_the_classes() -> None:
    names = ("head.weight", "head.bias", "aux_head.weight", "aux_head.bias")
    assert classifier_names(lvt()) == names


def test_drop_path_grows_to_the_last_block() -> None:
    model: Any = lvt(drop_path_rate=0.2)
    rates = [block.drop_path.drop_prob for stage in model.stages for block in stage.blocks]
    assert rates == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])


@pytest.mark.parametrize("patch_size", [1, 2, 4])
def test_patches_of_three_sizes(patch_size: int) -> None:
    model: Any = lvt(img_size=(24, 32), patch_size=patch_size, in_chans=1)
    assert model(torch.randn(1, 1, 24, 32)).shape == (1, 5)
    assert model.stages[0].grid == (24 // patch_size, 32 // patch_size)


def test_the_smallest_image() -> None:
    with pytest.raises(ConfigError, match=r"img_size = 24: too small .*nearest: 25"):
        build_network("lvt", img_size=24)
    with torch.device("meta"):
        build_network("lvt", img_size=25)
    assert grids_of((25, 33), 4, SIZES) == [(7, 9), (4, 5), (2, 3), (1, 2)]
    with pytest.raises(ConfigError, match="nearest: 25"):
        grids_of((40, 9), 4, (*SIZES[:3], LvtSize(8, 1, 1, 1)))


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"patch_size": 16}, "lvt cannot be built with patch_size 16: patch_size is 1, 2 or 4"),
        ({"num_classes": 0}, "LVT has no form without classes"),
        ({"depth": 3}, "unexpected keyword argument 'depth'"),
    ],
)
def test_what_it_does_not_take(options: dict[str, object], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        build_network("lvt", **options)


@pytest.mark.slow
def test_blvt_has_the_printed_size_too() -> None:
    """Broad attention has no parameters, and few FLOPs on 7x7 tokens."""
    model = build_network("lvt")
    done = graft(model, broad={"gamma": 0.4})
    assert done.broad == tuple(f"stages.{stage}.blocks.1.attn" for stage in (1, 2, 3))
    assert _millions(model) == pytest.approx(5.522, abs=1e-3)
    assert count_flops(model, (3, 224, 224)) / 1e9 == pytest.approx(0.899, abs=1e-3)
