"""BatchNorm's statistics of the network as it is scored."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import islice

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from tests.nn.networks import built, images_for, vit
from tests.training.conftest import Reads
from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.nn.layers.norm import NarrowBatchNorm
from vitnas.training.data import load_data
from vitnas.training.proxy import ProxyTraining
from vitnas.training.statistics import measure_statistics


def batches(number: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [5 + torch.randn(8, 2, 4, 4, generator=generator) for _ in range(number)]


def statistics(model: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if "running" in name}


@pytest.mark.parametrize("kind", [nn.BatchNorm2d, NarrowBatchNorm])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_they_are_plain_means_over_the_batches(
    kind: type[nn.BatchNorm2d], momentum: float | None
) -> None:
    norm, seen = kind(2, momentum=momentum), batches(15)
    for x in batches(3, seed=1):  # of earlier weights
        norm(x - 20)
    measure_statistics(norm, seen)
    mean = torch.cat(seen).mean((0, 2, 3))
    torch.testing.assert_close(norm.running_mean, mean)
    variance = torch.stack([x.var((0, 2, 3)) for x in seen]).mean(0)
    torch.testing.assert_close(norm.running_var, variance)
    assert norm.momentum == momentum


def test_each_layer_sees_what_the_ones_before_it_give() -> None:
    """Statistics of all layers are measured at once, and each scores as it is in training."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.BatchNorm2d(2)]
    model, (x,) = nn.Sequential(*layers), batches(1)
    measure_statistics(model, [x])
    scored, trained = model(x), copy.deepcopy(model).train()(x)
    torch.testing.assert_close(scored, trained, rtol=0.02, atol=0.02)  # n / (n - 1) in a variance


def test_each_pass_has_its_own() -> None:
    stage = {"token_mixer": "mhsa", "embed_dim": 24, "num_heads": 3, "passes": 2}
    model = built(vit(norm="batchnorm", class_token=False, stages=[stage]))
    before = statistics(copy.deepcopy(model))
    measure_statistics(model, [images_for(model, 4, seed) for seed in range(3)])
    assert all(not torch.equal(before[name], now) for name, now in statistics(model).items())


def test_without_dropout_they_are_those_of_torch() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(3))
    theirs, seen = copy.deepcopy(model), batches(4)
    measure_statistics(model, seen)
    update_bn(seen, theirs)
    for name, value in statistics(theirs).items():
        torch.testing.assert_close(statistics(model)[name], value)


def test_nothing_else_is_in_training() -> None:
    dropout, norm, seen = nn.Dropout(0.9), nn.BatchNorm2d(2), batches(2)
    state = torch.get_rng_state()
    measure_statistics(nn.Sequential(dropout, norm).train(), seen)
    assert not dropout.training
    assert not norm.training
    assert torch.equal(state, torch.get_rng_state())
    torch.testing.assert_close(norm.running_mean, torch.cat(seen).mean((0, 2, 3)))


def test_a_network_without_batch_norm_sees_no_batch() -> None:
    unread = iter(batches(1))
    measure_statistics(nn.Sequential(nn.Conv2d(2, 2, 1), nn.GroupNorm(1, 2)), unread)
    assert len(list(unread)) == 1


def test_a_layer_without_statistics_is_left_alone() -> None:
    norm = nn.BatchNorm2d(2, track_running_stats=False)
    measure_statistics(nn.Sequential(norm, nn.BatchNorm2d(2)), batches(1))
    assert norm.running_mean is None


def test_a_pass_that_fails_leaves_no_layer_in_training() -> None:
    norm = nn.BatchNorm2d(2, momentum=0.2)
    with pytest.raises(RuntimeError):
        measure_statistics(norm, [*batches(1), torch.zeros(1, 3, 2, 2)])
    assert norm.momentum == 0.2
    assert not norm.training


def test_no_number_is_read() -> None:
    """On a CUDA device the host would wait for it."""
    with Reads() as reads:
        measure_statistics(nn.BatchNorm2d(2), batches(3))
    assert reads.number == 0


def network(**fields: object) -> ModelConfig:
    stage = {"token_mixer": "mbconv", "kernel_size": 3}
    stages = [stage | {"embed_dim": 16}, stage | {"embed_dim": 32}]
    stem = {"kind": "conv", "stride": 1}
    shape = {"img_size": 8, "in_chans": 1, "num_classes": 10, "stem": stem, "stages": stages}
    return ModelConfig.model_validate(shape | {"downsample": "separable"} | fields)


def test_an_early_epoch_is_scored_with_the_weights_that_it_made() -> None:
    """By the running statistics of these 18 steps the network has 21 % (docs/proxy.md)."""
    proxy = ProxyConfig(epochs=2, batch_size=128, optimizer="muon", lr=1.2e-2)
    *_, last = ProxyTraining(network(), proxy, load_data(DataConfig(), 8), seed=0)
    assert last.top1 > 60


@pytest.mark.parametrize("fields", [{}, {"ema_decay": 0.9}, {"micro_batch_size": 32}])
def test_a_training_measures_by_batches_as_the_epoch_had_them(fields: dict[str, float]) -> None:
    """By plain images, a network that is trained on images with erased boxes scores worse."""
    tree = {"epochs": 2, "batch_size": 64, "augment": "shift", **fields}
    proxy = ProxyConfig.model_validate(tree)
    training = ProxyTraining(network(), proxy, load_data(DataConfig(), 8), seed=0)
    list(training)
    seen, size = islice(training._batches(2), 4), training.proxy.micro_batch_size
    again = copy.deepcopy(training.scored())
    measure_statistics(again, [part.x for batch in seen for part in batch.parts(size)])
    found = statistics(training.scored())
    assert all(torch.equal(value, found[name]) for name, value in statistics(again).items())


@pytest.mark.parametrize(("number", "batches"), [(300, 4), (3000, 6), (20_000, 16)])
def test_an_eighth_of_an_epoch_measures(number: int, batches: int) -> None:
    """At least 256 images and at most 1,024, here in batches of about 64."""
    images = load_data(DataConfig(), 8)
    many = images.train.of(torch.arange(number) % len(images.train))
    training = ProxyTraining(network(), ProxyConfig(batch_size=64), replace(images, train=many), 0)
    training._measure_statistics(1)
    counters = [v for name, v in training.model.state_dict().items() if "batches_tracked" in name]
    assert {int(counter) for counter in counters} == {batches}


@pytest.mark.parametrize("number", [3, 65, 300])
def test_few_images_are_enough(number: int) -> None:
    """No batch has a single image, in which a channel of one place has no variance."""
    images = load_data(DataConfig(), 8)
    few = replace(images, train=images.train.some(number))
    proxy = ProxyConfig(epochs=1, batch_size=64)
    tiny = network(stem={"kind": "conv", "stride": 4})
    (only,) = ProxyTraining(tiny, proxy, few, seed=0)
    assert 0 <= only.top1 <= 100
