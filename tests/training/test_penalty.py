"""The similarity penalty: Eq. 2 by hand, Eq. 6 as printed, maps of whatever has them."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
from torch import nn

from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.nn.model import build_model
from vitnas.training.final import FinalTraining
from vitnas.training.images import Images
from vitnas.training.penalty import (
    attention_modules,
    map_similarity,
    recorded_maps,
    similarity_penalty,
)
from vitnas.training.proxy import fresh_model

VIT: dict[str, Any] = {
    "img_size": 8,
    "in_chans": 1,
    "num_classes": 10,
    "stem": {"kind": "patch", "stride": 2},
    "stages": [{"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 2, "depth": 4}],
}


def vit(**changes: object) -> ModelConfig:
    return ModelConfig.model_validate(VIT | changes)


def test_similarity_by_hand() -> None:
    """Columns (1, 0) and (0, 1) against (1, 1) and (0, 2): cosines 1 / sqrt(2) and 1."""
    one = torch.tensor([[1.0, 0.0], [0.0, 1.0]])[None, None]
    other = torch.tensor([[1.0, 0.0], [1.0, 2.0]])[None, None]
    expected = (0.5**0.5 + 1) / 2
    assert float(map_similarity(one, other)) == pytest.approx(expected, abs=1e-6)
    rows = float(map_similarity(one.mT, other.mT))
    assert rows == pytest.approx((1 + 2 / 5**0.5) / 2, abs=1e-6)
    assert rows != pytest.approx(expected, abs=1e-3)  # so columns and rows are told apart


def test_similarity_is_the_mean_over_images_heads_and_tokens() -> None:
    torch.manual_seed(0)
    one, other = torch.rand(3, 2, 5, 5), torch.rand(3, 2, 5, 5)
    total = 0.0
    for b in range(3):
        for h in range(2):
            for t in range(5):
                p, q = one[b, h, :, t], other[b, h, :, t]
                total += float(p @ q / (p.norm() * q.norm()))
    assert float(map_similarity(one, other)) == pytest.approx(total / 30, abs=1e-5)


def test_the_penalty_sums_b_plus_one_pairs_and_skips_what_cannot_be_compared() -> None:
    a = torch.rand(2, 2, 4, 4)
    small, folded = torch.rand(2, 2, 2, 2), torch.rand(4, 2, 4, 4)
    assert float(similarity_penalty([a] * 6, 2, 2)) == pytest.approx(3.0, abs=1e-5)
    assert float(similarity_penalty([a] * 6, 99, 2)) == pytest.approx(5.0, abs=1e-5)
    assert float(similarity_penalty([a, a, small, small], 99, 2)) == pytest.approx(2.0, abs=1e-5)
    assert float(similarity_penalty([folded, folded], 99, 2)) == 0.0
    assert float(similarity_penalty([a], 4, 2)) == 0.0


@pytest.mark.parametrize(
    ("changes", "shapes"),
    [
        ({}, [(3, 2, 16, 16)] * 4),
        ({"class_token": True}, [(3, 2, 17, 17)] * 4),
        ({"reattention_blocks": 2}, [(3, 2, 16, 16)] * 4),
        ({"reattention_blocks": 2, "reattention": {"source": "shared"}}, [(3, 2, 16, 16)] * 4),
        ({"attn_drop_rate": 0.2}, [(3, 2, 16, 16)] * 4),
        (
            {"stages": [VIT["stages"][0] | {"groups": [4, 1], "depth": 2}]},
            [(12, 2, 4, 4), (3, 2, 16, 16)] * 2,
        ),
        (
            {"stages": [VIT["stages"][0] | {"token_mixer": "ska", "depth": 2}]},
            [(3, 2, 16, 16)] * 2,
        ),
        (
            {"stages": [VIT["stages"][0] | {"token_mixer": "cska", "depth": 2}]},
            [(3, 2, 16, 16)] * 2,
        ),
    ],
)
def test_maps_are_recorded_in_order_and_nothing_is_left_behind(
    changes: dict[str, object], shapes: list[tuple[int, ...]]
) -> None:
    torch.manual_seed(0)
    model = build_model(vit(**changes)).eval()
    images = torch.randn(3, 1, 8, 8)
    before = model(images)
    with recorded_maps(model) as maps:
        inside = model(images)
    assert [tuple(each.shape) for each in maps] == shapes
    assert torch.allclose(before, inside, atol=1e-5)
    assert all(module.fused_attn for module in attention_modules(model))
    assert not any(module._forward_hooks for module in model.modules())
    model(images)
    assert len(maps) == len(shapes)


def test_an_error_inside_leaves_nothing_behind() -> None:
    model = build_model(vit())
    with pytest.raises(ZeroDivisionError), recorded_maps(model):
        raise ZeroDivisionError
    assert all(module.fused_attn for module in attention_modules(model))
    assert not any(module._forward_hooks for module in model.modules())


def test_the_mixed_map_is_the_one_that_is_recorded() -> None:
    model = build_model(vit(reattention_blocks=4, reattention={"norm": "none"})).eval()
    for module in attention_modules(model):
        nn.init.constant_(module.reattention.theta.weight, 0.5)
    with recorded_maps(model) as maps:
        model(torch.randn(2, 1, 8, 8))
    for each in maps:
        assert torch.allclose(each[:, 0], each[:, 1])
        assert torch.allclose(each.sum(-1), torch.ones(2, 2, 16), atol=1e-5)


def test_timms_networks_have_the_same_names() -> None:
    model = timm.create_model("test_vit", img_size=32, num_classes=10)
    with recorded_maps(model) as maps:
        model(torch.randn(2, 3, 32, 32))
    assert len(maps) == len(model.blocks)
    assert all(torch.allclose(each.sum(-1), torch.ones(())) for each in maps)


def test_its_gradient_makes_maps_less_alike() -> None:
    torch.manual_seed(0)
    model, images = build_model(vit()), torch.randn(8, 1, 8, 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    values = []
    for _ in range(15):
        with recorded_maps(model) as maps:
            model(images)
        penalty = similarity_penalty(maps, 4, len(images))
        optimizer.zero_grad()
        penalty.backward()
        optimizer.step()
        values.append(float(penalty.detach()))
    assert values[-1] < 0.8 * values[0]


@pytest.mark.slow
def test_training_with_it_gives_maps_that_are_less_alike(digits: Images) -> None:
    tree = {"epochs": 3, "lr": 3e-3, "train_fraction": 0.3}
    ends = []
    for weight in (1e-9, 0.5):
        recipe = Recipe.model_validate(
            tree | {"similarity_penalty": {"weight": weight, "blocks": 2}}
        )
        model = fresh_model(vit(), 0, torch.device("cpu"))
        training = FinalTraining(model, recipe, digits, 0)
        for result in training:
            line = training.entry(result)
        ends.append(line["similarity"])
    assert ends[1] < ends[0] - 0.3
