"""A step, called or captured."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.nn.networks import built
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.config.training import ProxyConfig
from vitnas.training.images import Images
from vitnas.training.objective import Batch, Objective
from vitnas.training.optim import set_rate
from vitnas.training.proxy import ProxyTraining
from vitnas.training.ranks import ALONE
from vitnas.training.step import TrainingStep

CPU = torch.device("cpu")


def batches(config: ModelConfig, number: int) -> list[Batch]:
    draw = torch.Generator().manual_seed(0)
    size = (8, config.in_chans, *config.image_hw)
    labels = torch.arange(8) % config.num_classes
    return [Batch(torch.randn(size, generator=draw), labels) for _ in range(number)]


def new_step(model: nn.Module, recipe: Recipe, config: ModelConfig) -> TrainingStep:
    return TrainingStep(
        model, recipe, Objective(recipe, model, config.num_classes, CPU), CPU, ALONE
    )


def weights_after(config: ModelConfig, recipe: Recipe, place: torch.device | None) -> list[Tensor]:
    """The weights after three steps, with the rate as a number or as a tensor at a place."""
    model = built(config)
    step = new_step(model, recipe, config)
    for number, batch in enumerate(batches(config, 3)):
        set_rate(step.optimizer, 1e-2 / (1 + number), place)
        step._in_parts([batch])
    return [one.detach().clone() for one in model.parameters()]


def test_the_rate_on_a_device_stays_where_a_captured_step_reads_it(
    tiny_config: ModelConfig,
) -> None:
    step = new_step(built(tiny_config), Recipe(), tiny_config)
    set_rate(step.optimizer, 1e-2, CPU)
    before = [group["lr"] for group in step.optimizer.param_groups]
    set_rate(step.optimizer, 1e-3, CPU)
    for group, held in zip(step.optimizer.param_groups, before, strict=True):
        assert group["lr"] is held
        assert float(held) == pytest.approx(1e-3)


@pytest.mark.parametrize(
    "fields", [{"optimizer": "adamw"}, {"optimizer": "muon"}, {"layer_decay": 0.7}]
)
def test_a_rate_on_the_device_is_the_rate_as_a_number(
    tiny_config: ModelConfig, fields: dict[str, Any]
) -> None:
    """A captured step can only have the one on the device."""
    recipe = Recipe.model_validate({"label_smoothing": 0.1, **fields})
    found = weights_after(tiny_config, recipe, CPU)
    torch.testing.assert_close(found, weights_after(tiny_config, recipe, None))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"optimizer": "muon", "ema_decay": 0.9, "drop_path_rate": 0.2, "grad_clip": 1.0},
        {"mixup": 0.2, "cutmix": 1.0, "random_erasing": 0.5, "layer_decay": 0.8},
    ],
)
def test_captured_steps_train_as_called_ones(
    tiny_config: ModelConfig, digits: Images, fields: dict[str, Any]
) -> None:
    config = tiny_config.model_copy(update={"norm": "batchnorm"})
    recipe = ProxyConfig.model_validate({"epochs": 3, "augment": "shift", **fields})

    def curve(is_captured: bool) -> list[float]:
        training = ProxyTraining(config, recipe, digits, 0, "cuda")
        if not is_captured:
            training.call_steps()
        losses = [result.loss for result in training]
        replayed = training._step._replayed
        assert is_captured == (replayed is not None and any(replayed._graphs.values()))
        return losses

    assert curve(True) == pytest.approx(curve(False), rel=0.02)  # bfloat16, and sums in any order
