"""Every shipped space is drawn, priced, built and trained for a step."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from vitnas.api import search
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space, shipped_spaces
from vitnas.config.trials import RandomTrial
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.training.images import Images
from vitnas.training.proxy import ProxyTraining
from vitnas.training.split import Split


def cheap_networks(space: SearchSpace, count: int) -> list[ModelConfig]:
    """The cheapest of some draws within the limits, one for each mixer of the last stage."""
    drawn = [space.suggest(RandomTrial(seed)) for seed in range(40)]
    within = [c for c in drawn if over_limits(closed_form(c), space.config.limits) is None]
    within.sort(key=lambda config: closed_form(config).flops)
    by_mixer: dict[str, ModelConfig] = {}
    for config in within:
        by_mixer.setdefault(str(config.stages[-1].token_mixer), config)
    return list(by_mixer.values())[:count]


def noise(config: ModelConfig, count: int) -> Images:
    """Random pixels as large as the network's images."""
    random = torch.Generator().manual_seed(0)
    shape = (count, config.in_chans, *config.image_hw)
    split = Split(
        torch.randint(0, 256, shape, generator=random, dtype=torch.uint8),
        torch.arange(count) % config.num_classes,
        torch.full((config.in_chans, 1, 1), 127.0),
        torch.full((config.in_chans, 1, 1), 64.0),
    )
    return Images("noise", split, split, tuple(map(str, range(config.num_classes))))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_networks_of_the_space_train(name: str) -> None:
    space = load_space(name)
    proxy = space.config.proxy.model_copy(
        update={"epochs": 1, "batch_size": 2, "train_fraction": 1.0, "augment": "none"}
    )
    for config in cheap_networks(space, 2):
        (result,) = ProxyTraining(config, proxy, noise(config, 2), seed=0)
        assert math.isfinite(result.loss), config


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in shipped_spaces() if name.startswith("small/")])
def test_every_row_of_a_small_twin_is_trained_to_its_end(name: str, tmp_path: Path) -> None:
    rows = {config.key for config in load_space(name).networks()}
    run = search(
        name,
        out=tmp_path / "run",
        trials=len(rows),
        sampler="random",
        pruner="none",
        baselines=False,
        backend="serial",
    )
    assert {trial.key for trial in run.complete} == rows
    assert all((trial.top1 or 0.0) > 60 for trial in run.complete)
