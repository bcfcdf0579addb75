"""Networks for images of another size."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
from torch import Tensor

import vitnas  # noqa: F401
from tests.strategies import random_config
from vitnas.config.files import validate
from vitnas.config.mixers import MIXERS
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError, VitnasError
from vitnas.nn import HybridTransformer, build_model
from vitnas.nn.mixers import TokenMixer, mixer_class
from vitnas.nn.resize import config_at

SEEDS = [5, 29, 37, 7, 8, 28, 39, 42, 45, 11, 13, 17, 19, 23, 24, 26]
"""Of networks whose group numbers divide four times the tokens too."""


def built(config: ModelConfig) -> HybridTransformer:
    torch.manual_seed(0)
    return build_model(config).eval()


def vit(mixer: str = "mhsa", **fields: Any) -> ModelConfig:
    stage = {"token_mixer": mixer, "depth": 2, "embed_dim": 24}
    if mixer in ("mhsa", "ska", "cska"):
        stage["num_heads"] = 3
    stage |= {
        name: fields.pop(name)
        for name in ("groups", "q_proj", "key_kernel", "attn_act", "kernel_qkv", "stride_kv")
        if name in fields
    }
    tree = {"img_size": 32, "stem": {"stride": 8}, "num_classes": 7, "stages": [stage]}
    return validate(ModelConfig, {**tree, "class_token": True, **fields})


def twice(config: ModelConfig) -> tuple[int, int]:
    height, width = config.image_hw
    return 2 * height, 2 * width


def images_for(model: HybridTransformer) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(2, model.in_chans, *model.image_hw, generator=generator)


# The whole network


@pytest.mark.parametrize("seed", SEEDS)
def test_a_resized_network_is_one_built_at_that_size(seed: int) -> None:
    """Its state fits, and everything that is not in the state is the same too."""
    model = built(random_config(seed))
    model.resize(twice(model.config))
    fresh = built(config_at(random_config(seed), twice(random_config(seed))))
    assert model.config == fresh.config
    fresh.load_state_dict(model.state_dict())
    images = images_for(fresh)
    assert torch.equal(model(images), fresh(images))
    sizes = {name: vars(module) for name, module in fresh.named_modules()}
    for name, module in model.named_modules():
        for word in ("grid", "num_tokens", "out_channels", "in_features", "out_features"):
            assert vars(module).get(word) == sizes[name].get(word), (name, word)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_size_changes_nothing(seed: int) -> None:
    model = built(random_config(seed))
    images = images_for(model)
    expected, before = model(images), dict(model.named_parameters())
    model.resize(model.config.img_size)
    model.resize(model.config.image_hw)
    model.set_input_size()
    assert torch.equal(model(images), expected)
    assert all(parameter is before[name] for name, parameter in model.named_parameters())


@pytest.mark.parametrize("seed", SEEDS)
def test_there_and_back_is_the_same_network_in_shape(seed: int) -> None:
    config = random_config(seed)
    model = built(config)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    model.set_input_size(twice(config))
    model.set_input_size(img_size=config.image_hw)
    assert {name: value.shape for name, value in model.state_dict().items()} == shapes
    assert model.config == config_at(config, config.image_hw)
    assert model(images_for(model)).isfinite().all()


def test_untouched_parameters_stay_the_same_objects() -> None:
    model = built(vit("ska"))
    before = dict(model.named_parameters())
    model.resize(64)
    new = {name for name, parameter in model.named_parameters() if parameter is not before[name]}
    keys = {f"stages.0.blocks.{index}.mixer.static_key" for index in range(2)}
    assert new == {"pos_embed", *keys}


def test_a_classifier_of_all_places_stays_the_mean_where_it_is_one() -> None:
    """Weights that are the same at all places: the scores are those of the mean of the tokens."""
    model = built(vit(global_pool="flatten", head={"norm": "none"}))
    weight = torch.randn(7, 24)
    with torch.no_grad():
        model.head.classifier.weight.copy_(weight.repeat(1, 16) / 16)
    model.resize(64)
    assert model.head_hidden_size == 64 * 24
    assert model(images_for(model)).shape == (2, 7)
    features = torch.randn(2, 65, 24)
    expected = features[:, 1:].mean(dim=1) @ weight.T
    torch.testing.assert_close(model.forward_head(features), expected)


def test_re_attention_is_rescaled_by_the_number_of_keys() -> None:
    """Seven tokens a side have four keys, and fourteen have seven: not half as many."""
    strided = {"kernel_qkv": 3, "stride_kv": 2, "class_token": False}
    model = built(vit(img_size=56, reattention_blocks=2, **strided))
    norms = [block.mixer.reattention.norm for block in model.stages[0].blocks]
    for norm in norms:
        norm.running_mean.fill_(1 / 16)
    model.resize(112)
    for norm in norms:
        torch.testing.assert_close(norm.running_mean, torch.full((3,), 1 / 49))


@pytest.mark.parametrize("mixer", ["ska", "cska", "mlp"])
def test_frozen_types_and_modes_are_kept(mixer: str) -> None:
    model = built(vit(mixer)).to(torch.float64).requires_grad_(False).train()
    model.resize((64, 48))
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
    assert all(module.training for module in model.modules())
    with torch.device("meta"):
        empty = build_model(vit(mixer))
    empty.resize((64, 48))
    assert {name: p.shape for name, p in empty.named_parameters()} == {
        name: p.shape for name, p in model.named_parameters()
    }


def test_a_network_with_another_head_or_fewer_layers() -> None:
    model = built(vit("ska"))
    model.reset_classifier(0, "")
    model.prune_intermediate_layers([0])
    model.resize(64)
    assert model(images_for(model)).shape == (2, 65, 24)
    assert model.config.num_classes == 7


def test_it_can_be_exported_afterwards() -> None:
    model = built(vit("cska", class_token=False))
    model.resize((64, 32))
    images = images_for(model)
    program = torch.export.export(model, (images,))
    torch.testing.assert_close(program.module()(images), model(images))


def test_timm_is_told() -> None:
    from timm.models import get_model_input_config

    model = timm.create_model("sret_t", img_size=32, groups="[8,2][4,1][1,1]")
    model.set_input_size((64, 32))
    assert get_model_input_config(model)["input_size"] == (3, 64, 32)
    assert model.pretrained_cfg["input_size"] == (3, 224, 224)


def test_a_resized_vit_is_timms_resized_vit() -> None:
    from timm.models.vision_transformer import VisionTransformer

    from vitnas.nn.zoo.weights import from_timm

    torch.manual_seed(0)
    theirs = VisionTransformer(32, 8, num_classes=7, embed_dim=24, depth=2, num_heads=3).eval()
    ours = built(vit())
    ours.load_state_dict(from_timm(theirs.state_dict(), ours))
    theirs.set_input_size((48, 64))
    ours.resize((48, 64))
    images = images_for(ours)
    torch.testing.assert_close(ours(images), theirs(images))


# What cannot be


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (36, r"img_size = 36: must be a multiple of 8.*nearest: 32"),
        (40, r"stages\[0\].groups = \[4\]: 25 tokens.*5x5.*nearest: \[5\]"),
        ("big", r"img_size = 'big'"),
        (0, r"img_size = 0"),
        (-32, r"img_size = -32"),
        (32.0, r"img_size = 32.0"),
        ((32, 32, 32), "img_size"),
        (None, "img_size"),
    ],
)
def test_an_impossible_size_is_one_line_and_changes_nothing(size: Any, message: str) -> None:
    model = built(vit(class_token=False, groups=[4]))
    images, config = images_for(model), model.config
    expected, before = model(images), dict(model.named_parameters())
    with pytest.raises(ConfigError, match=message) as caught:
        model.resize(size)
    assert "\n" not in str(caught.value)
    assert model.config is config
    assert torch.equal(model(images), expected)
    assert all(parameter is before[name] for name, parameter in model.named_parameters())


def test_more_than_fits_into_memory_is_one_line_and_changes_nothing() -> None:
    model = built(vit("cska"))
    images, config = images_for(model), model.config
    expected = model(images)
    with pytest.raises(VitnasError, match="img_size = 800000: there is not enough memory"):
        model.resize(800_000)
    assert model.config is config
    assert torch.equal(model(images), expected)


def test_a_mixer_that_does_not_say_how_is_refused() -> None:
    for name in MIXERS:
        assert mixer_class(name).resized is not TokenMixer.resized

    class Mystery(TokenMixer):
        @classmethod
        def at(cls, place: Any) -> TokenMixer:
            return cls()

        def forward(self, x: Tensor, grid: Any, pass_index: int = 0, taps: Any = None) -> Tensor:
            return x

    model = built(vit())
    model.stages[0].blocks[1].mixer = Mystery()
    shape = model.pos_embed.shape
    with pytest.raises(VitnasError, match="Mystery cannot be resized"):
        model.resize(64)
    assert model.pos_embed.shape == shape
    assert model.config.img_size == 32
