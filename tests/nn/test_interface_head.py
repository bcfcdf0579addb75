"""The head in timm's interface: the classifier, another one, pooling."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import vitnas  # noqa: F401
from tests.nn.networks import deep, hierarchy, images_for, ready
from vitnas.errors import ConfigError


def test_get_classifier() -> None:
    model = ready(hierarchy())
    assert model.get_classifier() is model.head.classifier
    mlp = ready(hierarchy(head={"kind": "mlp"}))
    assert [type(layer).__name__ for layer in mlp.get_classifier()][::3] == ["Linear", "Linear"]


@pytest.mark.parametrize("kind", ["linear", "mlp"])
@pytest.mark.parametrize("build", [hierarchy, deep])
def test_a_reset_head_is_in_the_configuration(build: Any, kind: str) -> None:
    model = ready(build(head={"kind": kind}))
    images = images_for(model)
    features = model.forward_features(images)
    model.reset_classifier(5)
    assert torch.equal(model.forward_features(images), features)
    assert model(images).shape == (2, 5)
    assert model.num_classes == model.config.num_classes == 5
    again = ready(model.config)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(images), model(images))
    last = model.get_classifier() if kind == "linear" else model.get_classifier()[-1]
    assert 0.01 < last.weight.std() < 0.03
    assert not last.bias.any()


def test_another_pooling_takes_the_norm_along() -> None:
    """The file says where the norm stands: before `token`, after `avg`."""
    model = ready(deep())
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
    again = ready(model.config)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(images), model(images))
    model.reset_classifier(7, "token")
    assert model.norm.weight is weight
    torch.testing.assert_close(model.forward_features(images), tokens)
    assert model(images).shape == expected.shape
    assert model.config.pool == model.global_pool == "token"


def test_a_classifier_may_see_all_places() -> None:
    model = ready(hierarchy(global_pool="flatten"))
    images = images_for(model)
    features = model.forward_features(images)
    side_by_side = features.flatten(1)
    assert model.head_hidden_size == side_by_side.shape[1] == 4 * model.num_features
    torch.testing.assert_close(model(images), model.get_classifier()(side_by_side))
    pre_logits = model.forward_head(features, pre_logits=True)
    torch.testing.assert_close(pre_logits, side_by_side)
    model.reset_classifier(5, "avg")
    assert model.head_hidden_size == model.num_features
    assert model(images).shape == (2, 5)
    model.reset_classifier(5, "flatten")
    again = ready(model.config)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(images), model(images))


def test_what_is_before_the_classifier_has_the_width_of_what_is_left() -> None:
    for pool in ("avg", "flatten"):
        model = ready(hierarchy(global_pool=pool))
        model.prune_intermediate_layers([0])
        assert model.head_hidden_size == model.num_features == model.feature_info[0]["num_chs"]


def test_a_classifier_of_all_places_has_one_layer() -> None:
    with pytest.raises(ConfigError, match=r"needs head\.kind: linear"):
        hierarchy(global_pool="flatten", head={"kind": "mlp"})


def test_no_classifier_and_no_pooling() -> None:
    model = ready(hierarchy())
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
    flat = ready(deep())
    flat.reset_classifier(0, "")
    assert torch.equal(flat(images_for(flat)), flat.forward_features(images_for(flat)))


def test_a_new_classifier_is_where_the_others_are() -> None:
    model = ready(hierarchy(head={"kind": "mlp"})).to(torch.float64)
    model.reset_classifier(5)
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert not any(module.training for module in model.modules())
    model.train().reset_classifier(5)
    assert all(module.training for module in model.modules())
    model.to("meta").reset_classifier(5)
    assert all(p.is_meta for p in model.parameters())


def test_both_classifiers_of_a_distilled_network_are_reset() -> None:
    model = ready(deep(distillation_token=True, global_pool="token", reattention_blocks=0))
    images = images_for(model)
    features = model.forward_features(images)
    model.reset_classifier(5)
    first, second = model.get_classifier()
    expected = (first(features[:, 0]) + second(features[:, 1])) / 2
    torch.testing.assert_close(model(images), expected)
    assert model(images).shape == (2, 5)
    with pytest.raises(ConfigError, match="need global_pool: token"):
        model.reset_classifier(5, "avg")
    model.reset_classifier(0)
    assert torch.equal(model(images), model.forward_head(features, pre_logits=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ten",), "num_classes = 'ten'"),
        ((-1,), "num_classes = -1"),
        ((True,), "num_classes = true"),
        ((False,), "num_classes = false"),
        ((2.0,), r"num_classes = 2.0"),
        ((5, "max"), "global_pool = 'max': should be 'avg', 'token' or 'flatten'"),
        ((5, "token"), "global_pool = 'token': needs class_token: true"),
        ((0, 3), "global_pool = 3"),
    ],
)
def test_nonsense_for_a_head_is_one_line_and_changes_nothing(
    arguments: tuple[Any, ...], message: str
) -> None:
    model = ready(hierarchy())
    before, config = model(images_for(model)), model.config
    with pytest.raises(ConfigError, match=message) as caught:
        model.reset_classifier(*arguments)
    assert "\n" not in str(caught.value)
    assert torch.equal(model(images_for(model)), before)
    assert model.config is config
