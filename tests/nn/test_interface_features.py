"""The features of our networks in timm's interface, where possible against timm's own networks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import timm
import torch
from timm.models import FeatureInfo, FeatureListNet
from torch import Tensor, nn

import vitnas  # noqa: F401
from tests.nn.networks import (
    VARIED,
    caformer,
    deep,
    hierarchy,
    images_for,
    randomised,
    ready,
    timm_caformer,
    vit,
)
from tests.strategies import random_config
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn import HybridTransformer
from vitnas.nn.zoo.weights import from_timm

# Against timm's ViT and MetaFormer with the same weights


@pytest.fixture(scope="module")
def vits() -> tuple[HybridTransformer, nn.Module]:
    from timm.models.vision_transformer import VisionTransformer

    theirs = VisionTransformer(32, 8, num_classes=7, embed_dim=24, depth=2, num_heads=3)
    randomised(theirs)
    ours = ready(vit())
    ours.load_state_dict(from_timm(theirs.state_dict(), ours))
    return ours, theirs


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"indices": 1},
        {"indices": [0]},
        {"indices": [-2, 1]},
        {"norm": True},
        {"return_prefix_tokens": True},
        {"output_fmt": "NLC"},
        {"output_fmt": "NLC", "norm": True, "return_prefix_tokens": True},
        {"indices": [0], "stop_early": True},
        {"indices": [0], "stop_early": True, "intermediates_only": True},
        {"intermediates_only": True, "norm": True},
    ],
)
def test_intermediates_are_those_of_timms_vit(vits: Any, arguments: dict[str, Any]) -> None:
    ours, theirs = vits
    images = images_for(ours)
    found = ours.forward_intermediates(images, **arguments)
    torch.testing.assert_close(found, theirs.forward_intermediates(images, **arguments))


def test_features_and_head_are_those_of_timms_vit(vits: Any) -> None:
    ours, theirs = vits
    images = images_for(ours)
    features = ours.forward_features(images)
    torch.testing.assert_close(features, theirs.forward_features(images))
    for pre_logits in (False, True):
        expected = theirs.forward_head(features, pre_logits=pre_logits)
        torch.testing.assert_close(ours.forward_head(features, pre_logits=pre_logits), expected)
    for name in ("num_features", "head_hidden_size", "num_prefix_tokens", "in_chans"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.global_pool == theirs.global_pool == "token"
    strides = [(info["num_chs"], info["reduction"]) for info in theirs.feature_info]
    assert [(info["num_chs"], info["reduction"]) for info in ours.feature_info] == strides


@pytest.mark.parametrize("norm", [False, True])
def test_pruning_is_that_of_timms_vit(vits: Any, norm: bool) -> None:
    ours, theirs = copy.deepcopy(vits)
    images = images_for(ours)
    for model in (ours, theirs):
        assert model.prune_intermediate_layers([0], prune_norm=norm) == [0]
    torch.testing.assert_close(ours(images), theirs(images))
    assert len(ours.stages[0].blocks) == 1


def test_intermediates_are_those_of_timms_metaformer() -> None:
    theirs = timm_caformer()
    ours = ready(caformer())
    ours.load_state_dict(from_timm(theirs.state_dict(), ours))
    images = images_for(ours)
    for arguments in ({}, {"indices": 2}, {"indices": [1], "stop_early": True}):
        final, features = ours.forward_intermediates(images, **arguments)
        expected_final, expected = theirs.forward_intermediates(images, **arguments)
        torch.testing.assert_close(features, expected, rtol=1e-3, atol=1e-3)
        picture = final.permute(0, 3, 1, 2)
        torch.testing.assert_close(picture, expected_final, rtol=1e-3, atol=1e-3)
    for info, other in zip(ours.feature_info, theirs.feature_info, strict=True):
        assert {key: info[key] for key in other} == other


# Features


@pytest.mark.parametrize("seed", VARIED)
def test_features_are_what_feature_info_says(seed: int) -> None:
    model = ready(random_config(seed))
    info = FeatureInfo(model.feature_info, len(model.feature_info))
    images = images_for(model)
    final, features = model.forward_intermediates(images)
    torch.testing.assert_close(final, model.forward_features(images))
    height, width = model.image_hw
    for feature, channels, stride in zip(features, info.channels(), info.reduction(), strict=True):
        assert feature.shape == (2, channels, height // stride, width // stride)
    modules = dict(model.named_modules())
    assert all(name in modules for name in info.module_name())


@pytest.mark.parametrize("config", [hierarchy(), deep(broad={"gamma": 0.5})])
def test_a_level_is_what_its_module_gives(config: ModelConfig) -> None:
    model = ready(config)
    seen: list[Tensor] = []
    modules = dict(model.named_modules())
    for info in model.feature_info:
        modules[info["module"]].register_forward_hook(lambda m, i, output: seen.append(output))
    images = images_for(model)
    features = model.forward_intermediates(images, output_fmt="NLC", intermediates_only=True)
    for feature, output in zip(features, seen, strict=True):
        assert torch.equal(feature, output[:, model.num_prefix_tokens :])


@pytest.mark.parametrize("seed", VARIED)
def test_stopping_early_and_pruning_give_the_same_features(seed: int) -> None:
    model = ready(random_config(seed))
    images = images_for(model)
    whole = model.forward_intermediates(images, intermediates_only=True)
    for index, feature in enumerate(whole):
        early = model.forward_intermediates(
            images, indices=[index], stop_early=True, intermediates_only=True
        )
        assert torch.equal(early[0], feature)
        pruned = copy.deepcopy(model)
        assert pruned.prune_intermediate_layers([index], prune_norm=True) == [index]
        (found,) = pruned.forward_intermediates(images, [index], intermediates_only=True)
        assert torch.equal(found, feature)
        assert pruned.num_features == feature.shape[1]
        assert torch.equal(pruned(images), pruned.forward_features(images))
        pruned.train()
        loss = pruned.forward_features(images).square().sum()
        (loss + sum(f.sum() for f in pruned.forward_intermediates(images)[1])).backward()
        assert not [name for name, p in pruned.named_parameters() if p.grad is None]


@pytest.mark.parametrize("config", [hierarchy(), deep(broad={"gamma": 0.5})])
def test_pruning_at_the_last_level_can_keep_the_scores(config: ModelConfig) -> None:
    model = ready(config)
    images = images_for(model)
    expected = model(images)
    last = len(model.feature_info) - 1
    assert model.prune_intermediate_layers([last], prune_head=False) == [last]
    assert torch.equal(model(images), expected)


def test_unknown_formats_and_levels_are_refused() -> None:
    model = ready(hierarchy())
    with pytest.raises(ValueError, match="NHWC: must be NCHW or NLC"):
        model.forward_intermediates(images_for(model), output_fmt="NHWC")
    with pytest.raises(AssertionError, match="out of range"):
        model.forward_intermediates(images_for(model), indices=[3])


def test_features_only() -> None:
    options = {"img_size": 64, "features_only": True}
    model = timm.create_model("sret_t", **options).eval()
    assert model.feature_info.channels() == [64, 128, 256]
    assert model.feature_info.reduction() == [8, 16, 32]
    shapes = [tuple(feature.shape) for feature in model(torch.randn(1, 3, 64, 64))]
    assert shapes == [(1, 64, 8, 8), (1, 128, 4, 4), (1, 256, 2, 2)]
    few = timm.create_model("sret_t", out_indices=(0, 1), **options).eval()
    assert [tuple(f.shape[1:]) for f in few(torch.randn(1, 3, 64, 64))] == [(64, 8, 8), (128, 4, 4)]
    assert len(few.model.stages) == 2
    flat = timm.create_model("bvit_5m", **options).eval()
    shapes = [tuple(feature.shape) for feature in flat(torch.randn(1, 3, 64, 64))]
    assert shapes == [(1, 192, 4, 4)] * 3


@pytest.mark.slow
@pytest.mark.parametrize("way", ["hook", "fx"])
def test_features_by_hook_and_fx_are_tokens(way: str) -> None:
    options: dict[str, Any] = {"img_size": 64, "features_only": True, "feature_cls": way}
    for name, shapes in (("sret_t", [(1, 64, 64), (1, 16, 128), (1, 4, 256)]), ("bvit_5m", None)):
        model = timm.create_model(name, **options).eval()
        assert str(model.output_fmt) == "Format.NLC"
        found = [tuple(feature.shape) for feature in model(torch.randn(1, 3, 64, 64))]
        assert found == (shapes or [(1, 17, 192)] * 3)


@pytest.mark.parametrize("way", ["list", "dict", "nonsense", FeatureListNet])
def test_other_ways_to_features_are_refused(way: Any) -> None:
    with pytest.raises(ConfigError, match=r"feature_cls.*nearest: getter"):
        timm.create_model("sret_t", features_only=True, feature_cls=way)
