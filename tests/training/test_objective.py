"""The loss of a recipe: what networks of a search share, though not all of them can have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.nn.model import build_model
from vitnas.training.distill import Teacher
from vitnas.training.images import Images
from vitnas.training.mixed_depth import one_pass
from vitnas.training.objective import Batch, Objective, smoothed

CPU = torch.device("cpu")
BOTH = {"mixed_depth": True, "similarity_penalty": {"weight": 0.5}, "label_smoothing": 0.0}


def network(tokens: Mapping[str, bool] | None = None, **stage: object) -> torch.nn.Module:
    torch.manual_seed(0)
    tree = {
        "img_size": 8,
        "in_chans": 1,
        "num_classes": 10,
        "stem": {"kind": "patch", "stride": 2},
        "stages": [{"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8, **stage}],
        **(tokens or {}),
    }
    return build_model(ModelConfig.model_validate(tree)).eval()


def test_a_network_without_recursion_and_maps_has_the_plain_loss(digits: Images) -> None:
    model = network(token_mixer="dwconv", kernel_size=3, head_dim=None)
    x, y = digits.train.normalise(digits.train.x[:8]), digits.train.y[:8]
    objective = Objective(Recipe.model_validate(BOTH), model, 10, CPU)
    loss = objective(objective.mixed(Batch(x, y)))
    assert torch.equal(loss, cross_entropy(model(x), y))


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_smoothed_labels_are_those_of_torch(share: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 10, generator=generator, requires_grad=True)
    y = torch.randint(10, (8,), generator=generator)
    ours = cross_entropy(logits, smoothed(y, logits, share))
    theirs = cross_entropy(logits, y, label_smoothing=share)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits) for loss in (ours, theirs)))


def test_hard_distillation_teaches_each_token_by_its_own_classifier(digits: Images) -> None:
    model: Any = network({"class_token": True, "distillation_token": True}, groups=[1, 1]).train()
    x, y = digits.train.normalise(digits.train.x[:8]), digits.train.y[:8]
    answers = torch.randn(8, 10)
    recipe = {
        "label_smoothing": 0.0,
        "mixed_depth": True,
        "distill": {"teacher": "t", "kind": "hard"},
    }
    teacher = Teacher(torch.nn.Identity(), CPU)
    objective = Objective(Recipe.model_validate(recipe), model, 10, CPU, teacher)
    loss = objective(Batch(x, y, answers))
    model.set_distilled_training()
    deep = model(x)
    with one_pass(model):
        shallow = model(x)
    labels = [cross_entropy(scores[0], y) for scores in (deep, shallow)]
    decisions = [cross_entropy(scores[1], answers.argmax(1)) for scores in (deep, shallow)]
    torch.testing.assert_close(loss, torch.stack(labels + decisions).mean())
    model.set_distilled_training(False)
    assert objective(Batch(x, y, answers)) == loss
    assert model(x).shape == (8, 10)
    loss.backward()
    classifiers = (model.head.classifier, model.head.distillation_classifier)
    assert all(one.weight.grad.abs().sum() > 0 for one in classifiers)


def test_a_recursive_network_with_maps_has_both(digits: Images) -> None:
    model = network(groups=[1, 1], depth=2)
    x, y = digits.train.normalise(digits.train.x[:8]), digits.train.y[:8]
    objective = Objective(Recipe.model_validate(BOTH), model, 10, CPU)
    loss, plain = objective(Batch(x, y)), cross_entropy(model(x), y)
    (similarity,) = objective.similarities
    assert float(similarity) > 0
    assert abs(float((loss - 0.5 * similarity - plain).detach())) > 1e-4, "the shallow branch"
    objective.begin(Recipe.model_validate(BOTH))
    assert not objective.similarities
