"""The long training: what a recipe says is done, to the bit again after a kill, and exported."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.conftest import numpy_state
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.nn.layers.residual import residual_scales
from vitnas.nn.model import build_model
from vitnas.nn.weights import weights_bytes
from vitnas.training.distill import Teacher
from vitnas.training.final import FinalTraining
from vitnas.training.images import Images
from vitnas.training.objective import Batch
from vitnas.training.proxy import ProxyTraining, fresh_model
from vitnas.training.score import evaluate

CPU = torch.device("cpu")
SHORT: dict[str, Any] = {"epochs": 2, "train_fraction": 0.2, "lr": 3e-3, "warmup_epochs": 1.0}


def recipe(**changes: Any) -> Recipe:
    return Recipe.model_validate(SHORT | changes)


def training(config: ModelConfig, images: Images, **changes: Any) -> FinalTraining:
    return FinalTraining(fresh_model(config, 0, CPU), recipe(**changes), images, 0)


def curve(config: ModelConfig, images: Images, **changes: Any) -> list[tuple[float, float]]:
    return [(each.top1, each.loss) for each in training(config, images, **changes)]


def test_without_what_is_long_it_is_the_short_training(
    tiny_config: ModelConfig, digits: Images
) -> None:
    """One loop for both: the same numbers to the bit."""
    long = curve(tiny_config, digits, augment="shift")
    short = ProxyTraining(tiny_config, recipe(augment="shift"), digits, seed=0)
    assert long == [(each.top1, each.loss) for each in short]


MIXED: list[dict[str, Any]] = [
    {"mixup": 0.8, "cutmix": 1.0},
    {"random_erasing": 0.5},
    {"ema_decay": 0.9},
    {"optimizer": "lamb"},
    {"optimizer": "sgd"},
    {"min_lr": 3e-3},
    {"mixed_depth": True},
    {"drop_path_rate": 0.3},
    {"rand_augment": "rand-m9-mstd0.5-inc1"},
    {"color_jitter": 0.4},
    {"repeated_augmentation": 3},
    {"layer_decay": 0.7},
    {"cooldown_epochs": 1.0},
]


@pytest.fixture(scope="module")
def plain(tiny_config: ModelConfig, digits: Images) -> list[tuple[float, float]]:
    """The curve of a training with none of the parts."""
    return curve(tiny_config, digits)


@pytest.mark.slow
@pytest.mark.parametrize("changes", MIXED, ids=lambda changes: "-".join(changes))
def test_every_part_repeats_itself_and_leaves_no_trace(
    tiny_config: ModelConfig,
    digits: Images,
    plain: list[tuple[float, float]],
    changes: dict[str, Any],
) -> None:
    random.seed(1)
    np.random.seed(1)
    states = (
        torch.get_rng_state(),
        random.getstate(),
        numpy_state(),
    )
    first = curve(tiny_config, digits, **changes)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert numpy_state() == states[2]
    random.seed(2)
    np.random.seed(2)
    torch.manual_seed(2)
    assert curve(tiny_config, digits, **changes) == first
    if "drop_path_rate" not in changes:  # which is the network's, see `make_plan`
        assert first != plain


def test_the_average_is_what_is_scored_and_it_warms_up(
    tiny_config: ModelConfig, digits: Images
) -> None:
    run = training(tiny_config, digits, ema_decay=0.9999)
    *_, last = run
    assert last.top1 == evaluate(run._step.ema.module, digits.val)
    with torch.no_grad():
        far = [
            float((average - now).norm() / now.norm())
            for average, now in zip(
                run._step.ema.module.parameters(), run.model.parameters(), strict=True
            )
            if now.ndim > 1
        ]
    assert 0 < max(far) < 0.5  # 0.9999 over 18 steps would have left it at the first weights


def test_the_rate_starts_and_ends_at_the_least_one(
    tiny_config: ModelConfig, digits: Images
) -> None:
    rates: list[float] = []
    run = training(tiny_config, digits, min_lr=1e-3)
    run._step.optimizer.register_step_pre_hook(
        lambda optimizer, *_: rates.append(optimizer.param_groups[0]["lr"])
    )
    list(run)
    assert 1e-3 < min(rates) < max(rates) <= 3e-3
    assert rates[-1] == pytest.approx(1e-3, rel=0.2)


def test_a_teacher_is_learned_from_and_labels_are_not_looked_at(
    tiny_config: ModelConfig, digits: Images
) -> None:
    teacher = Teacher(build_model(tiny_config), CPU)
    before = weights_bytes(teacher.model)
    run = FinalTraining(fresh_model(tiny_config, 0, CPU), recipe(), digits, 0, teacher=teacher)
    x, y = digits.train.normalise(digits.train.x[:8]), digits.train.y[:8]
    run.model.eval()
    assert torch.equal(run._objective(Batch(x, y)), run._objective(Batch(x, (y + 1) % 10)))
    list(run)
    assert weights_bytes(teacher.model) == before


@pytest.mark.slow
def test_a_teachers_knowledge_reaches_a_student_without_labels(
    tiny_config: ModelConfig, digits: Images
) -> None:
    source = ProxyTraining(tiny_config, recipe(epochs=4, train_fraction=0.5), digits, 0)
    *_, taught = source
    student = FinalTraining(
        fresh_model(tiny_config, 1, CPU),
        recipe(epochs=4, train_fraction=0.5, label_smoothing=0.0),
        digits,
        1,
        teacher=Teacher(source.model, CPU),
    )
    *_, last = student
    assert taught.top1 > 75
    assert last.top1 > 65


def test_the_log_has_every_residual_scale(lrc: ModelConfig, digits: Images) -> None:
    run = training(lrc, digits)
    entries = [run.entry(result) for result in run]
    assert [entry["epoch"] for entry in entries] == [1, 2]
    names = set(entries[-1]["residual_scales"])
    parameters = dict(run.model.named_parameters())
    assert names == {n for n in parameters if n.endswith((".branch", ".identity"))}
    assert (
        len(names) == 4 + 4 + 2 * 2
    )  # two blocks, and a non-linear layer after each of two passes
    for name, value in entries[-1]["residual_scales"].items():
        assert value == float(parameters[name].detach())
    assert entries[0]["residual_scales"] != entries[1]["residual_scales"]


def test_a_network_without_scales_logs_none(tiny_config: ModelConfig, digits: Images) -> None:
    assert residual_scales(build_model(tiny_config)) == {}
    run = training(tiny_config, digits, epochs=1)
    assert "residual_scales" not in run.entry(next(iter(run)))
