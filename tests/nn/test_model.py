"""The whole network."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from tests.nn.networks import built, caformer, images_for, randomised, ready, timm_caformer, vit
from tests.strategies import model_configs, random_config
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import MemoryLimitError, VitnasError
from vitnas.nn import InputSizeError, build_model
from vitnas.nn.model import drop_path_rates, least_memory
from vitnas.nn.zoo.weights import from_timm


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(model_configs())
def test_every_configuration_builds_and_learns(config: ModelConfig) -> None:
    """Scores of the right shape; eval is deterministic, images do not see each other."""
    model, images = built(config), images_for(config, batch=4)
    scores = model(images)
    assert scores.shape == (4, config.num_classes)
    assert scores.isfinite().all()
    scores.square().sum().backward()
    unreached = {name for name, p in model.named_parameters() if p.grad is None}
    assert not unreached
    model.eval()
    before = torch.get_rng_state()
    together = model(images)
    assert torch.equal(model(images), together)
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(model(images[1:2]), together[1:2], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(model_configs())
def test_saved_weights_give_the_same_network(config: ModelConfig) -> None:
    torch.manual_seed(1)
    model, other = ready(config), build_model(config).eval()
    other.load_state_dict(model.state_dict())
    images = images_for(config)
    assert torch.equal(model(images), other(images))


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        ({}, {"embed_dim": 1_000_000}),
        ({}, {"depth": 1_000_000}),
        ({"img_size": 1_000_000}, {}),
        ({"reattention_blocks": 1, "img_size": 2_000}, {"head_dim": 1}),
    ],
)
def test_what_does_not_fit_into_memory_is_not_built(
    change: dict[str, Any], stage: dict[str, Any]
) -> None:
    """A million channels, blocks or pixels a side, or maps of a million tokens."""
    small = {"token_mixer": "mhsa", "embed_dim": 32, **stage}
    tree = {"img_size": 8, "stem": {"stride": 2}, "stages": [small], **change}
    with pytest.raises(MemoryLimitError, match=r"parameters.* take [\d,.]+ GiB and .* are free"):
        build_model(validate(ModelConfig, tree))


def test_the_least_memory_is_never_too_much() -> None:
    """A network with one block has more than its weights and less than a megabyte beside them."""
    config = random_config(3)
    weights = sum(p.nbytes for p in built(config).parameters())
    assert weights < least_memory(config) < weights + 2**20


def test_forward_is_features_then_head() -> None:
    for seed in range(8):
        config = random_config(seed)
        model, images = ready(config), images_for(config)
        features = model.forward_features(images)
        last = len(config.stages) - 1
        is_flat = last == 0 or config.class_token
        tokens = (config.num_tokens(last),) if is_flat else config.grids[-1]
        assert features.shape == (2, *tokens, model.num_features)
        assert model.output_fmt == ("NLC" if is_flat else "NHWC")
        assert model.forward_head(features, pre_logits=True).shape == (2, model.head_hidden_size)
        assert torch.equal(model.forward_head(features), model(images))


def test_attributes() -> None:
    config = random_config(3)
    model = built(config)
    assert model.config is config
    assert model.num_classes == config.num_classes
    assert model.num_features == config.stages[-1].embed_dim


# Against timm: the same weights give the same scores


def test_is_timms_vision_transformer() -> None:
    from timm.models.vision_transformer import VisionTransformer

    theirs = VisionTransformer(32, 8, num_classes=7, embed_dim=24, depth=2, num_heads=3)
    randomised(theirs)
    ours = ready(vit())
    ours.load_state_dict(from_timm(theirs.state_dict(), ours))
    images = images_for(ours.config)
    torch.testing.assert_close(ours(images), theirs(images))


def test_is_timms_caformer() -> None:
    theirs = timm_caformer()
    ours = ready(caformer())
    ours.load_state_dict(from_timm(theirs.state_dict(), ours))
    images = images_for(ours.config)
    torch.testing.assert_close(ours(images), theirs(images), rtol=1e-3, atol=1e-3)


# Input size


@pytest.mark.parametrize("size", [(32, 40), (64, 64), (40, 32)])
def test_another_image_size_is_an_error_naming_both(size: tuple[int, int]) -> None:
    model = built(vit())
    with pytest.raises(InputSizeError, match=rf"32x32 .* given {size[0]}x{size[1]}") as caught:
        model(torch.randn(1, 3, *size))
    assert isinstance(caught.value, VitnasError)
    assert isinstance(caught.value, ValueError)


def test_other_channels_are_an_error_naming_both() -> None:
    with pytest.raises(InputSizeError, match=r"3 channels .* given 1"):
        built(vit())(torch.randn(1, 1, 32, 32))


# Position table, class token, drop-path, weight decay, initial weights


def test_position_table_is_added_once_after_the_stem() -> None:
    config = vit(class_token=False)
    model, images = ready(config), images_for(config)
    assert model.pos_embed.shape == (1, 16, 24)
    x = model.stem(images) + model.pos_embed
    for stage in model.stages:
        x = stage(x)
    assert torch.equal(model.forward_features(images), x)
    assert built(vit(pos_embed="none")).pos_embed is None


def test_class_token_comes_first_and_has_a_position() -> None:
    model = built(vit())
    assert model.class_token.shape == (1, 1, 24)
    assert model.pos_embed.shape == (1, 17, 24)


def test_pooling_a_network_with_a_class_token_by_average_leaves_it_out() -> None:
    config = vit(global_pool="avg")
    model, images = ready(config), images_for(config)
    features = model.forward_features(images)
    pooled = model.head.norm(features[:, 1:].mean(dim=1))
    torch.testing.assert_close(model(images), model.head.classifier(pooled))


def test_a_class_token_goes_through_a_pyramid() -> None:
    """What it reads in the last stage decides; features leave it out."""
    stages = [{"token_mixer": "mhsa", "embed_dim": dim, "num_heads": 2} for dim in (8, 12)]
    tree = {"img_size": 16, "stem": {"stride": 4}, "class_token": True, "stages": stages}
    config = validate(ModelConfig, tree)
    model, images = ready(config), images_for(config)
    features = model.forward_features(images)
    assert (features.shape, model.output_fmt) == ((2, 5, 12), "NLC")
    torch.testing.assert_close(model(images), model.head.classifier(features[:, 0]))
    maps = model.forward_intermediates(
        images, norm=True, return_prefix_tokens=True, intermediates_only=True
    )
    assert [(x.shape, token.shape) for x, token in maps] == [
        ((2, 8, 4, 4), (2, 1, 8)),
        ((2, 12, 2, 2), (2, 1, 12)),
    ]
    torch.testing.assert_close(maps[-1][1], features[:, :1])
    model.resize(32)
    assert model.forward_features(images_for(model.config)).shape == (2, 17, 12)
    model.prune_intermediate_layers([0])
    assert model(images_for(model.config)).shape == (2, 65, 8)


def test_a_distillation_token_goes_through_a_pyramid_and_an_export() -> None:
    """The class token comes first; one linear layer takes both tokens to the next width."""
    stages = [{"token_mixer": "ska", "embed_dim": dim, "num_heads": 2} for dim in (8, 12)]
    tokens = {"class_token": True, "distillation_token": True}
    tree = {"img_size": 16, "stem": {"stride": 4}, "stages": stages, **tokens}
    config = validate(ModelConfig, tree)
    model, images = ready(config), images_for(config)
    assert torch.equal(
        model.embed(images)[0, 0], (model.class_token + model.pos_embed[:, :1])[0, 0]
    )
    features = model.forward_features(images)
    assert features.shape == (2, 6, 12)
    exported = torch.export.export(model, (images,)).module()
    torch.testing.assert_close(exported(images), model(images))
    rows = model.pos_embed[:, :2]
    model.resize(32)
    assert torch.equal(model.pos_embed[:, :2], rows)
    assert model.forward_features(images_for(model.config)).shape == (2, 18, 12)


def test_drop_path_rises_linearly_over_all_blocks() -> None:
    stages = [{"token_mixer": "pool", "depth": depth, "embed_dim": 8} for depth in (2, 3)]
    tree = {"img_size": 32, "stages": stages, "drop_path_rate": 0.4}
    rates = drop_path_rates(validate(ModelConfig, tree))
    assert rates[0] == pytest.approx([0.0, 0.1])
    assert rates[1] == pytest.approx([0.2, 0.3, 0.4])
    assert drop_path_rates(vit(drop_path_rate=0.0)) == [[0.0, 0.0]]


def test_no_weight_decay_names_existing_parameters() -> None:
    """Tables, class token and LRC's scalars; not the static keys, which are weights."""
    stage = {"token_mixer": "ska", "embed_dim": 32, "groups": [1, 1], "nll_ratio": 1.0}
    tree = {"img_size": 32, "class_token": True, "residual": "lrc", "stages": [stage]}
    model = built(validate(ModelConfig, tree))
    names = dict(model.named_parameters())
    exempt = model.no_weight_decay()
    assert exempt <= set(names)
    assert {"pos_embed", "class_token"} <= exempt
    scalars = {name for name in exempt if name.endswith((".branch", ".identity"))}
    assert len(scalars) == 2 * (2 + 2)
    assert all(names[name].numel() == 1 for name in scalars)
    assert not any("static_key" in name for name in exempt)


def test_initial_weights() -> None:
    stage = {"token_mixer": "mhsa", "embed_dim": 256, "residual": "lrc"}
    tree = {"img_size": 64, "stem": {"stride": 4}, "class_token": True, "stages": [stage]}
    model = built(validate(ModelConfig, tree))
    for module in model.modules():
        if isinstance(module, nn.Linear):
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.05)
            assert not module.bias.any()
    assert model.pos_embed.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.class_token.std().item() == pytest.approx(0.02, rel=0.2)
