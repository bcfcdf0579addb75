"""Where a whole network runs: traced, exported, in half precision, without memory, on a card."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from tests.nn.networks import VARIED, built, images_for, ready, vit
from tests.strategies import random_config
from vitnas.config.mixers import MIXERS
from vitnas.nn import build_model


def test_the_seeds_below_are_varied() -> None:
    configs = [random_config(seed) for seed in VARIED]
    assert {mixer for c in configs for s in c.stages for mixer in s.kinds} == set(MIXERS)
    assert any(len(s.kinds) > 1 for c in configs for s in c.stages)
    assert any(g > 1 for c in configs for s in c.stages for g in s.groups)
    assert {len(c.stages) > 1 for c in configs if c.broad.gamma} == {True, False}
    assert any(c.class_token for c in configs)
    assert any("batchnorm" in (c.norm, *(s.norm for s in c.stages)) for c in configs)
    assert any(c.reattention_blocks for c in configs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", VARIED)
def test_traces(seed: int) -> None:
    config = random_config(seed)
    model, images = ready(config), images_for(config)
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.jit.TracerWarning)
        traced = torch.jit.trace(model, images, check_trace=False)
    other = images_for(config, batch=3, seed=1)
    torch.testing.assert_close(traced(other), model(other))


@pytest.mark.slow
@pytest.mark.parametrize("seed", VARIED)
def test_exports(seed: int) -> None:
    config = random_config(seed)
    model, images = ready(config), images_for(config)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(model, (images,), dynamic_shapes=({0: batch},))
    other = images_for(config, batch=5, seed=1)
    torch.testing.assert_close(program.module()(other), model(other))
    assert "randperm" not in str(program.graph)


@pytest.mark.parametrize("seed", VARIED)
def test_runs_in_bfloat16_autocast(seed: int) -> None:
    config = random_config(seed)
    model, images = built(config), images_for(config, batch=4)
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(images).float().square().mean()
    loss.backward()
    assert loss.isfinite()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("seed", VARIED)
def test_runs_with_channels_last(seed: int) -> None:
    config = random_config(seed)
    model, images = ready(config), images_for(config)
    expected = model(images)
    last = torch.channels_last
    found = model.to(memory_format=last)(images.contiguous(memory_format=last))
    torch.testing.assert_close(found, expected)


@pytest.mark.slow
def test_builds_without_memory() -> None:
    for seed in VARIED:
        config = random_config(seed)
        with torch.device("meta"):
            model = build_model(config)
            assert model(torch.empty(2, config.in_chans, *config.image_hw)).shape == (
                2,
                config.num_classes,
            )
        assert all(parameter.is_meta for parameter in model.parameters())


def test_randperm_is_never_called_outside_training(monkeypatch: pytest.MonkeyPatch) -> None:
    config = vit(class_token=False, permute="always", groups="[4]")
    model, images = built(config), images_for(config)
    calls: list[Any] = []
    original = torch.randperm

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(torch, "randperm", counted)
    model.eval()(images)
    assert not calls
    model.train()(images)
    assert len(calls) == 2


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("seed", VARIED)
def test_cuda_gives_the_scores_of_the_cpu(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    config = random_config(seed)
    model, images = ready(config), images_for(config)
    expected = model(images)
    found = model.cuda()(images.cuda()).cpu()
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    with torch.autocast("cuda", torch.bfloat16):
        model.train()(images_for(config, 4).cuda()).float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
