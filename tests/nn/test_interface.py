"""timm's model interface on our networks, where possible against timm's own networks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import timm
import torch
from timm.models import FeatureInfo, FeatureListNet
from timm.models._manipulate import group_parameters
from torch import Tensor, nn

import vitnas  # noqa: F401
from tests.nn.test_model import caformer, randomised, vit
from tests.strategies import random_config
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn import HybridTransformer, InputSizeError, build_model
from vitnas.nn.zoo import zoo_config
from vitnas.nn.zoo.weights import from_timm

VARIED = [5, 4, 29, 37, 3, 7, 8, 28, 39, 42, 45]


def built(config: ModelConfig) -> HybridTransformer:
    torch.manual_seed(0)
    return build_model(config).eval()


def images_for(model: HybridTransformer, batch: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, model.in_chans, *model.image_hw, generator=generator)


def hierarchy(**fields: Any) -> ModelConfig:
    stages = [
        {"token_mixer": "mhsa", "depth": 2, "embed_dim": 16, "num_heads": 2, "nll_ratio": 1.0},
        {"token_mixer": "ska", "embed_dim": 24, "num_heads": 3},
        {"token_mixer": "dwconv", "embed_dim": 32, "kernel_size": 3},
    ]
    tree = {"img_size": 32, "num_classes": 7, "stem": {"stride": 4}, "stages": stages}
    return validate(ModelConfig, {**tree, "groups": "[4,2][1][1]", **fields})


def deep(**fields: Any) -> ModelConfig:
    """Re-attention, broad attention or shared maps, in one stage with a class token."""
    stage = {"token_mixer": "mhsa", "depth": 4, "embed_dim": 24, "num_heads": 3}
    tree = {"img_size": 32, "stem": {"stride": 8}, "num_classes": 7, "stages": [stage]}
    return validate(ModelConfig, {**tree, "class_token": True, **fields})


# Against timm's ViT and MetaFormer with the same weights


@pytest.fixture(scope="module")
def vits() -> tuple[HybridTransformer, nn.Module]:
    from timm.models.vision_transformer import VisionTransformer

    theirs = VisionTransformer(32, 8, num_classes=7, embed_dim=24, depth=2, num_heads=3)
    randomised(theirs)
    ours = built(vit())
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
    from timm.models.metaformer import (
        Attention,
        LayerNorm2dNoBias,
        LayerNormNoBias,
        MetaFormer,
        SepConv,
    )

    theirs = MetaFormer(
        num_classes=7,
        depths=[1, 1, 1, 1],
        dims=[32, 48, 64, 96],
        token_mixers=[SepConv, SepConv, Attention, Attention],
        norm_layers=[LayerNorm2dNoBias] * 2 + [LayerNormNoBias] * 2,
    )
    randomised(theirs)
    ours = built(caformer())
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
    model = built(random_config(seed))
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
    model = built(config)
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
    model = built(random_config(seed))
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
    model = built(config)
    images = images_for(model)
    expected = model(images)
    last = len(model.feature_info) - 1
    assert model.prune_intermediate_layers([last], prune_head=False) == [last]
    assert torch.equal(model(images), expected)


def test_unknown_formats_and_levels_are_refused() -> None:
    model = built(hierarchy())
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


# The head


def test_get_classifier() -> None:
    model = built(hierarchy())
    assert model.get_classifier() is model.head.classifier
    mlp = built(hierarchy(head={"kind": "mlp"}))
    assert [type(layer).__name__ for layer in mlp.get_classifier()][::3] == ["Linear", "Linear"]


@pytest.mark.parametrize("kind", ["linear", "mlp"])
@pytest.mark.parametrize("build", [hierarchy, deep])
def test_a_reset_head_is_in_the_configuration(build: Any, kind: str) -> None:
    model = built(build(head={"kind": kind}))
    images = images_for(model)
    features = model.forward_features(images)
    model.reset_classifier(5)
    assert torch.equal(model.forward_features(images), features)
    assert model(images).shape == (2, 5)
    assert model.num_classes == model.config.num_classes == 5
    again = built(model.config)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(images), model(images))
    last = model.get_classifier() if kind == "linear" else model.get_classifier()[-1]
    assert 0.01 < last.weight.std() < 0.03
    assert not last.bias.any()


def test_another_pooling_takes_the_norm_along() -> None:
    """The file says where the norm stands: before `token`, after `avg`."""
    model = built(deep())
    images = images_for(model)
    with torch.no_grad():
        model.norm.weight.mul_(torch.rand(24) + 1)
    weight, expected = model.norm.weight, model(images)
    tokens = model.norm(model.forward_features(images)) * 0 + model.forward_features(images)
    model.reset_classifier(5, "avg")
    assert model.head.norm.weight is weight
    assert isinstance(model.norm, nn.Identity)
    unnormed = model.forward_features(images)
    pooled = model.head.norm(unnormed[:, 1:].mean(1))
    torch.testing.assert_close(model(images), model.get_classifier()(pooled))
    again = built(model.config)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(images), model(images))
    model.reset_classifier(7, "token")
    assert model.norm.weight is weight
    torch.testing.assert_close(model.forward_features(images), tokens)
    assert model(images).shape == expected.shape
    assert model.config.pool == model.global_pool == "token"


def test_no_classifier_and_no_pooling() -> None:
    model = built(hierarchy())
    images = images_for(model)
    pre_logits = model.forward_head(model.forward_features(images), pre_logits=True)
    model.reset_classifier(0)
    assert torch.equal(model(images), pre_logits)
    assert (model.num_classes, model.config.num_classes) == (0, 7)
    model.reset_classifier(0, "")
    assert model(images).shape == (2, 2, 2, 32)
    torch.testing.assert_close(model(images), model.head.norm(model.forward_features(images)))
    model.reset_classifier(3)
    assert model(images).shape == (2, 2, 2, 3)
    model.reset_classifier(3, "avg")
    assert model(images).shape == (2, 3)
    assert model.config.num_classes == 3
    flat = built(deep())
    flat.reset_classifier(0, "")
    assert torch.equal(flat(images_for(flat)), flat.forward_features(images_for(flat)))


def test_a_new_classifier_is_where_the_others_are() -> None:
    model = built(hierarchy(head={"kind": "mlp"})).to(torch.float64)
    model.reset_classifier(5)
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert not any(module.training for module in model.modules())
    model.train().reset_classifier(5)
    assert all(module.training for module in model.modules())
    model.to("meta").reset_classifier(5)
    assert all(p.is_meta for p in model.parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ten",), "num_classes = 'ten'"),
        ((-1,), "num_classes = -1"),
        ((True,), "num_classes = true"),
        ((False,), "num_classes = false"),
        ((2.0,), r"num_classes = 2.0"),
        ((5, "max"), "global_pool = 'max': should be 'avg' or 'token'"),
        ((5, "token"), "global_pool = 'token': needs class_token: true"),
        ((0, 3), "global_pool = 3"),
    ],
)
def test_nonsense_for_a_head_is_one_line_and_changes_nothing(
    arguments: tuple[Any, ...], message: str
) -> None:
    model = built(hierarchy())
    before, config = model(images_for(model)), model.config
    with pytest.raises(ConfigError, match=message) as caught:
        model.reset_classifier(*arguments)
    assert "\n" not in str(caught.value)
    assert torch.equal(model(images_for(model)), before)
    assert model.config is config


# Groups and weight decay


def test_groups_follow_the_layers() -> None:
    model = built(hierarchy())
    groups = group_parameters(model, model.group_matcher(), reverse=True)
    order = [
        "stem.conv.0.weight",
        "stages.0.blocks.0.block.norm1.weight",
        "stages.0.blocks.1.nlls.1.mlp.fc1.weight",
        "stages.1.blocks.0.mixer.static_key",
        "stages.2.blocks.0.norm1.weight",
        "head.classifier.weight",
    ]
    assert [groups[name] for name in order] == list(range(6))
    assert groups["pos_embed"] == 0
    assert groups["stages.2.downsample.conv.weight"] == groups["stages.2.blocks.0.norm1.weight"]
    coarse = group_parameters(model, model.group_matcher(coarse=True), reverse=True)
    assert [coarse[name] for name in order] == [0, 1, 1, 2, 3, 4]
    flat = built(deep())
    for coarse_groups in (False, True):
        groups = group_parameters(flat, flat.group_matcher(coarse_groups), reverse=True)
        assert groups["class_token"] == groups["stem.conv.0.weight"] == 0
        assert groups["norm.weight"] == groups["stages.0.blocks.3.norm1.weight"] == 4
        assert groups["head.classifier.weight"] == 5


def test_timms_optimizer_takes_layer_decay_and_no_weight_decay() -> None:
    from timm.optim import create_optimizer_v2

    model = built(hierarchy(residual="lrc"))
    optimizer = create_optimizer_v2(model, "adamw", lr=1.0, weight_decay=0.1, layer_decay=0.5)
    decays = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    names = dict(model.named_parameters())
    assert set(decays) == {id(parameter) for parameter in names.values()}
    scale = [decays[id(names[n])]["lr_scale"] for n in ("pos_embed", "head.classifier.weight")]
    assert scale == [0.5**5, 1.0]
    decayed = {name for name, p in names.items() if decays[id(p)]["weight_decay"]}
    assert "stages.1.blocks.0.mixer.static_key" in decayed
    assert not decayed & model.no_weight_decay()
    assert not any(name.endswith((".bias", ".identity", "norm1.weight")) for name in decayed)


# Gradient checkpointing

CHECKPOINTED = {
    "recursion, groups, static key": hierarchy(residual="lrc", drop_path_rate=0.3, drop_rate=0.2),
    "re-attention": deep(reattention_blocks=3, attn_drop_rate=0.2, proj_drop_rate=0.1),
    "broad": deep(broad={"gamma": 0.5}, pos_drop_rate=0.1),
    "shared maps": deep(reattention_blocks=2, reattention={"source": "shared"}),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_checkpointing_changes_memory_and_nothing_else(name: str) -> None:
    """Same scores, same gradients, same statistics; fewer bytes kept for the backward pass."""
    plain = built(CHECKPOINTED[name]).train()
    saving = copy.deepcopy(plain)
    saving.set_grad_checkpointing()
    images, found = images_for(plain, 4), []
    for model in (plain, saving):
        torch.manual_seed(5)
        with _KeptBytes() as kept:
            scores = model(images)
        scores.square().sum().backward()
        found.append((scores, kept.total))
    (expected, much), (scores, little) = found
    assert torch.equal(scores, expected)
    for (word, parameter), other in zip(plain.named_parameters(), saving.parameters(), strict=True):
        torch.testing.assert_close(other.grad, parameter.grad, msg=word)
    for (word, buffer), other in zip(plain.named_buffers(), saving.buffers(), strict=True):
        assert torch.equal(buffer, other), word
    assert little < 0.5 * much
    saving.set_grad_checkpointing(False)
    with _KeptBytes() as kept:
        saving(images)
    assert kept.total == much


class _KeptBytes(torch.autograd.graph.saved_tensors_hooks):
    """Bytes of distinct tensors that autograd keeps inside."""

    def __init__(self) -> None:
        self.seen: dict[int, Tensor] = {}
        super().__init__(self._keep, lambda tensor: tensor)

    def __enter__(self) -> _KeptBytes:  # type: ignore[override]
        super().__enter__()
        return self

    def _keep(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter):
            self.seen[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    @property
    def total(self) -> int:
        return sum(tensor.untyped_storage().nbytes() for tensor in self.seen.values())


# Options of create_model


def test_drop_rates_arrive() -> None:
    rates = {"drop_rate": 0.1, "pos_drop_rate": 0.2, "proj_drop_rate": 0.3, "attn_drop_rate": 0.4}
    model = timm.create_model("deepvit_16b", img_size=32, drop_path_rate=0.5, **rates)
    block = model.stages[0].blocks[-1]
    assert (model.head.drop.p, model.pos_drop.p) == (0.1, 0.2)
    assert (block.mixer.proj_drop.p, block.mixer.attn_drop.p) == (0.3, 0.4)
    assert block.mlp.drop1.p == 0.3
    assert block.drop_path.drop_prob == 0.5
    images = torch.randn(2, 3, 32, 32)
    assert not torch.equal(model(images), model(images))
    model.eval()
    assert torch.equal(model(images), model(images))


@pytest.mark.parametrize("name", ["drop_rate", "pos_drop_rate"])
def test_head_and_position_dropout_act_in_training_alone(name: str) -> None:
    model, plain = built(deep(**{name: 0.5})), built(deep())
    images = images_for(model)
    features = model.forward_features(images)
    assert torch.equal(model(images), plain(images))
    model.train()
    assert torch.equal(model.forward_features(images), features) == (name == "drop_rate")
    vector = model.forward_head(features, pre_logits=True)
    assert torch.equal(vector, features[:, 0]) == (name == "pos_drop_rate")


def test_no_classes_no_pooling_other_channels_device_and_type() -> None:
    options: dict[str, Any] = {"img_size": (32, 64), "in_chans": 5, "device": "meta"}
    model = timm.create_model("sret_t", num_classes=0, dtype=torch.bfloat16, **options)
    assert (model.num_classes, model.config.num_classes) == (0, 1000)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert all(t.is_meta for t in [*model.parameters(), *model.buffers()])
    images = torch.empty(2, 5, 32, 64, dtype=torch.bfloat16, device="meta")
    assert model(images).shape == (2, 256)
    model = timm.create_model("sret_t", num_classes=0, global_pool="", **options)
    assert model(images.float()).shape == (2, 1, 2, 256)
    model = timm.create_model("bvit_5m", num_classes=3, global_pool="", **options)
    assert model(images.float()).shape == (2, 9, 3)


@pytest.mark.parametrize("name", ["sret_t", "skaformer_s18", "bvit_5m", "mixer_b16"])
def test_weights_of_another_image_size(name: str, tmp_path: Any) -> None:
    """timm loads a checkpoint saved at 32 px into a network for 64 px, and it is interpolated."""
    stages = [dict(stage, depth=1) for stage in zoo_config(name).to_tree()["stages"]]
    options: dict[str, Any] = {"num_classes": 5, "stages": stages}
    small = timm.create_model(name, img_size=32, **options).eval()
    torch.save(small.state_dict(), tmp_path / "weights.pt")
    source = {"file": str(tmp_path / "weights.pt"), "num_classes": 5, "input_size": (3, 32, 32)}
    large = timm.create_model(
        name, pretrained=True, pretrained_cfg_overlay=source, img_size=64, **options
    )
    small.resize(64)
    images = torch.randn(1, 3, 64, 64)
    torch.testing.assert_close(large.eval()(images), small(images))


def test_saved_for_the_hub_and_back(tmp_path: Any) -> None:
    """timm's folder of a model that was resized and given another head."""
    from timm.models import get_model_input_config
    from timm.models._hub import save_for_hf

    model = timm.create_model("sret_t", img_size=32, in_chans=4).eval()
    model.set_input_size((64, 32))
    model.reset_classifier(3)
    save_for_hf(model, tmp_path)
    again = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
    images = torch.randn(1, 4, 64, 32)
    assert torch.equal(again(images), model(images))
    assert get_model_input_config(again)["input_size"] == (4, 64, 32)


@pytest.mark.parametrize("images", [(1, 3, 64, 32), (1, 1, 32, 32), (3, 32, 32), (1, 3, 40, 40)])
def test_other_images_are_refused_naming_what_fits(images: tuple[int, ...]) -> None:
    model = timm.create_model("sret_t", img_size=32)
    with pytest.raises(InputSizeError, match=r"32|3 channels|axis for the batch") as caught:
        model(torch.randn(images))
    assert "\n" not in str(caught.value)


# Where it runs


@pytest.mark.parametrize("seed", VARIED)
def test_traces_with_fx(seed: int) -> None:
    model = built(random_config(seed))
    traced = torch.fx.symbolic_trace(model)
    other = images_for(model, 3)
    torch.testing.assert_close(traced(other), model(other))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("seed", VARIED)
def test_whole_network_in_half(seed: int, dtype: torch.dtype) -> None:
    model = built(random_config(seed))
    images = images_for(model)
    expected = model(images)
    found = model.to(dtype)(images.to(dtype))
    assert found.dtype == dtype
    scale = expected.abs().max()
    torch.testing.assert_close(found.float() / scale, expected / scale, rtol=0.1, atol=0.1)
