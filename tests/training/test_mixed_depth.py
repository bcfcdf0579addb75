"""Mixed depth: one set of weights, one stem, two depths."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.nn.model import HybridTransformer, build_model
from vitnas.training.final import FinalTraining
from vitnas.training.images import Images
from vitnas.training.mixed_depth import kept_stem, one_pass, shallow_logits
from vitnas.training.objective import Batch
from vitnas.training.proxy import fresh_model

CONFIG = ModelConfig.model_validate(
    {
        "img_size": 8,
        "in_chans": 1,
        "num_classes": 10,
        "residual": "lrc",
        "stem": {"kind": "conv", "stride": 2},
        "stages": [
            {
                "token_mixer": "mhsa",
                "embed_dim": 16,
                "head_dim": 8,
                "depth": 2,
                "groups": "[4,1,1]",
                "nll_ratio": 1.0,
            }
        ],
    }
)


@pytest.fixture
def model() -> HybridTransformer:
    torch.manual_seed(0)
    return build_model(CONFIG)


def branches(model: HybridTransformer, x: Tensor) -> tuple[Tensor, Tensor]:
    with kept_stem(model) as kept:
        deep = model(x)
    return deep, shallow_logits(model, x, kept[0])


def test_the_shallow_branch_passes_through_every_block_once(model: HybridTransformer) -> None:
    model.eval()
    x = torch.randn(3, 1, 8, 8)
    deep, shallow = branches(model, x)
    tokens = model.stem(x) + model.pos_embed
    for block in model.stages[0].blocks:
        tokens = block.nlls[0](block.block(tokens, (4, 4), 0))
    assert torch.allclose(shallow, model.forward_head(model.norm(tokens)), atol=1e-6)
    assert torch.equal(deep, model(x))
    assert not torch.allclose(deep, shallow, atol=1e-3)


def test_nothing_is_left_behind(model: HybridTransformer) -> None:
    x = torch.randn(2, 1, 8, 8)
    branches(model, x)
    with one_pass(model):
        assert {block.passes for block in model.stages[0].blocks} == {1}
    with pytest.raises(ZeroDivisionError), one_pass(model):
        raise ZeroDivisionError
    assert {block.passes for block in model.stages[0].blocks} == {3}
    assert "forward" not in vars(model.stem)
    assert not model.stem._forward_hooks


def test_the_stem_sees_a_batch_once(model: HybridTransformer) -> None:
    """Its batch norms would otherwise count every batch twice."""
    branches(model.train(), torch.randn(4, 1, 8, 8))
    counts = [value for name, value in model.named_buffers() if "num_batches" in name]
    assert counts
    assert all(int(count) == 1 for count in counts)


def test_there_are_no_parameters_but_the_networks_and_both_branches_reach_them(
    model: HybridTransformer,
) -> None:
    before = {name: id(parameter) for name, parameter in model.named_parameters()}
    y = torch.tensor([1, 2, 3, 4])
    deep, shallow = branches(model, torch.randn(4, 1, 8, 8))
    parameters = dict(model.named_parameters())
    assert {name: id(parameter) for name, parameter in parameters.items()} == before
    grads = [
        torch.autograd.grad(
            cross_entropy(logits, y),
            list(parameters.values()),
            retain_graph=True,
            allow_unused=True,
        )
        for logits in (deep, shallow)
    ]
    for name, of_deep, of_shallow in zip(parameters, *grads, strict=True):
        assert of_deep is not None, name
        later = ".nlls.1." in name or ".nlls.2." in name
        assert (of_shallow is None) == later, name
    ((cross_entropy(deep, y) + cross_entropy(shallow, y)) / 2).backward()
    weight = "stages.0.blocks.0.block.mixer.qkv.weight"
    index = list(parameters).index(weight)
    mean = (grads[0][index] + grads[1][index]) / 2
    assert mean.abs().max() > 0
    found = parameters[weight].grad
    assert found is not None
    assert torch.allclose(found, mean, atol=1e-6)


def test_training_takes_the_mean_of_both_losses(digits: Images) -> None:
    recipe = Recipe(mixed_depth=True, label_smoothing=0.0)
    torch.manual_seed(0)
    model = build_model(CONFIG)
    training = FinalTraining(model, recipe, digits, 0)
    model.eval()
    x, y = digits.train.normalise(digits.train.x[:8]), digits.train.y[:8]
    deep, shallow = branches(model, x)
    expected = (cross_entropy(deep, y) + cross_entropy(shallow, y)) / 2
    assert torch.allclose(training._objective(Batch(x, y)), expected)


@pytest.mark.slow
def test_both_branches_learn(digits: Images) -> None:
    recipe = Recipe(mixed_depth=True, epochs=4, lr=3e-3)
    training = FinalTraining(fresh_model(CONFIG, 0, torch.device("cpu")), recipe, digits, 0)
    for result in training:
        last = result
    x, y = digits.val.normalise(digits.val.x), digits.val.y
    with torch.no_grad(), one_pass(training.model):
        shallow = 100 * float((training.model(x).argmax(1) == y).float().mean())
    assert last.top1 > 70
    assert shallow > 60
