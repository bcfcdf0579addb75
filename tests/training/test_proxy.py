"""The short training: learns, repeats itself to the bit, leaves no trace, stops when it must."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.training.conftest import Reads, numpy_state
from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.data.rows import Rows
from vitnas.errors import ConfigError, DeviceError
from vitnas.nn.model import HybridTransformer
from vitnas.training import data
from vitnas.training.data import load_data
from vitnas.training.images import Images
from vitnas.training.objective import Batch
from vitnas.training.proxy import EpochResult, ProxyTraining, count_batches
from vitnas.training.score import Diverged, evaluate, score

SHORT = ProxyConfig(epochs=2, train_fraction=0.2, augment="shift")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _curve(
    config: ModelConfig, images: Images, seed: int = 0, proxy: ProxyConfig = SHORT
) -> list[tuple[float, float]]:
    return [(result.top1, result.loss) for result in ProxyTraining(config, proxy, images, seed)]


def test_three_epochs_of_digits_are_above_eighty_percent(
    tiny_config: ModelConfig, digits: Images
) -> None:
    training = ProxyTraining(tiny_config, ProxyConfig(epochs=3), digits, seed=0)
    results = list(training)
    assert [result.epoch for result in results] == [1, 2, 3]
    assert results[-1].top1 > 80
    assert results[-1].loss < results[0].loss
    assert all(result.seconds > 0 for result in results)
    assert evaluate(training.model, digits.test()) > 80


def test_the_last_epoch_is_scored_on_all_images_and_the_others_on_a_share(
    tiny_config: ModelConfig, digits: Images
) -> None:
    """Training itself is the same to the bit."""
    part = digits.val.subset(0.3, digits.split_seed)
    whole = ProxyTraining(tiny_config, SHORT, digits, 1)
    expected = []
    for result, images in zip(whole, (part, digits.val), strict=True):
        expected.append((score(whole.scored(), images).top1, result.loss))
    proxy = SHORT.model_copy(update={"curve_fraction": 0.3})
    assert _curve(tiny_config, digits, seed=1, proxy=proxy) == expected


@pytest.mark.slow
def test_the_last_epoch_can_score_in_int8(tiny_config: ModelConfig, digits: Images) -> None:
    pytest.importorskip("onnxruntime")
    plain = list(ProxyTraining(tiny_config, SHORT, digits, seed=0))
    training = ProxyTraining(tiny_config, SHORT, digits, seed=0, int8=True)
    *earlier, last = training
    assert [one.top1 for one in earlier] == [one.top1 for one in plain[:-1]]
    assert last.float_top1 == plain[-1].top1
    assert last.log_likelihood != plain[-1].log_likelihood, "the scores are those of int8"
    assert abs(last.top1 - plain[-1].top1) < 5
    network = training.counted()
    assert evaluate(network, digits.val) == last.top1
    assert evaluate(training.scored(), digits.val) == last.float_top1, "it is as it was"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"micro_batch_size": 12},
        {"micro_batch_size": 31, "label_smoothing": 0.0},
        {"grad_checkpointing": True},
        {"grad_checkpointing": True, "micro_batch_size": 7, "ema_decay": 0.9},
        {"grad_checkpointing": True, "mixed_depth": True},
        {"micro_batch_size": 20, "similarity_penalty": {"weight": 0.5}},
    ],
)
def test_a_step_in_less_memory_is_the_same_step(
    lrc: ModelConfig, digits: Images, changes: dict[str, object]
) -> None:
    """To rounding, where no batch norm sees the parts."""
    tree = lrc.model_dump() | {"stem": {"kind": "patch", "stride": 2}, "norm": "layernorm"}
    config = ModelConfig.model_validate(tree)
    less = {"micro_batch_size": None, "grad_checkpointing": False}
    proxy = ProxyConfig.model_validate(SHORT.model_dump() | {"lr": 1e-3} | changes)
    curve = _curve(config, digits, proxy=proxy)
    whole = _curve(config, digits, proxy=proxy.model_copy(update=less))
    assert [loss for _, loss in curve] == pytest.approx([loss for _, loss in whole], rel=2e-3)
    assert [top1 for top1, _ in curve] == pytest.approx([top1 for top1, _ in whole], abs=2)


@given(number=st.integers(2, 70), size=st.integers(2, 40) | st.none())
def test_parts_of_a_batch_are_the_batch(number: int, size: int | None) -> None:
    x, y = torch.rand(number, 1, 2, 2), torch.arange(number)
    parts = list(Batch(x, y, None).parts(size))
    assert torch.equal(torch.cat([part.x for part in parts]), x)
    assert torch.equal(torch.cat([part.y for part in parts]), y)
    sizes = [len(part.y) for part in parts]
    assert min(sizes) >= 2
    assert max(sizes) <= max(3, size or number)
    assert max(sizes) - min(sizes) <= 1
    assert [part.weight * number for part in parts] == pytest.approx(sizes)


def test_a_share_of_no_image_is_all_of_them(tiny_config: ModelConfig, digits: Images) -> None:
    proxy = SHORT.model_copy(update={"curve_fraction": 1e-6})
    assert _curve(tiny_config, digits, proxy=proxy) == _curve(tiny_config, digits)


def test_the_same_seed_gives_the_same_curve_to_the_bit_whatever_ran_before(
    tiny_config: ModelConfig, digits: Images
) -> None:
    first = _curve(tiny_config, digits, seed=1)
    torch.manual_seed(99)
    other = _curve(tiny_config, digits, seed=2)
    assert _curve(tiny_config, digits, seed=1) == first
    assert other != first


def test_two_trainings_in_turns_do_not_disturb_each_other(
    tiny_config: ModelConfig, digits: Images
) -> None:
    alone = _curve(tiny_config, digits, seed=1)
    pair = [ProxyTraining(tiny_config, SHORT, digits, seed) for seed in (1, 2)]
    turns = list(zip(*pair, strict=True))
    assert [(one.top1, one.loss) for one, _ in turns] == alone


def test_global_randomness_is_left_alone(tiny_config: ModelConfig, digits: Images) -> None:
    torch.manual_seed(3)
    states = (
        torch.get_rng_state(),
        random.getstate(),
        numpy_state(),
    )
    for _ in ProxyTraining(tiny_config, SHORT, digits, seed=0):
        assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert numpy_state() == states[2]


def test_it_can_be_stopped_after_any_epoch(tiny_config: ModelConfig, digits: Images) -> None:
    training = ProxyTraining(tiny_config, SHORT, digits, seed=0)
    result = next(iter(training))
    assert isinstance(result, EpochResult)
    score = evaluate(training.model, digits.val, SHORT.eval_batch_size)
    assert score == result.top1


@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_ends_the_training_at_once(
    tiny_config: ModelConfig, digits: Images, scale: float
) -> None:
    training = ProxyTraining(tiny_config, SHORT, digits, seed=0)
    with torch.no_grad():
        next(training.model.parameters()).mul_(scale)
    steps = []
    training.model.register_forward_hook(lambda *_: steps.append(1))
    with pytest.raises(Diverged, match="loss in epoch 1"):
        list(training)
    assert len(steps) == 1


def test_no_memory_is_passed_on(
    tiny_config: ModelConfig, digits: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = ProxyTraining(tiny_config, SHORT, digits, seed=0)

    def exhausted(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(training.model, "forward", exhausted)
    with pytest.raises(torch.OutOfMemoryError):
        next(iter(training))


@given(st.integers(2, 5000), st.integers(2, 600))
def test_no_batch_is_left_with_one_image(number: int, batch_size: int) -> None:
    sizes = [
        len(part) for part in torch.arange(number).tensor_split(count_batches(number, batch_size))
    ]
    assert sum(sizes) == number
    assert min(sizes) >= 2
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= max(batch_size, 3)


def test_a_few_images_and_batch_norm_get_along(tiny_config: ModelConfig, folder_root: Path) -> None:
    images = load_data(DataConfig(name="imagefolder", root=str(folder_root)), 8)
    tree = tiny_config.model_dump() | {"num_classes": 3, "in_chans": 3}
    tree["stem"] = {"kind": "conv", "stride": 2}
    proxy = ProxyConfig(epochs=1, batch_size=2)
    (result,) = ProxyTraining(ModelConfig.model_validate(tree), proxy, images, seed=0)
    assert math.isfinite(result.loss)


def test_a_network_for_other_images_is_refused(tiny_config: ModelConfig, digits: Images) -> None:
    other = ModelConfig.model_validate(tiny_config.model_dump() | {"num_classes": 1000})
    with pytest.raises(ConfigError, match="num_classes = 1000"):
        ProxyTraining(other, SHORT, digits, seed=0)


def test_a_device_that_is_not_there_is_refused(
    tiny_config: ModelConfig, digits: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError):
        ProxyTraining(tiny_config, SHORT, digits, seed=0, device="cuda")


def test_the_test_images_are_never_touched(tiny_config: ModelConfig, digits: Images) -> None:
    blind = replace(digits, _test=None)
    assert _curve(tiny_config, blind) == _curve(tiny_config, digits)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_digits_are_learnt_on_cuda(tiny_config: ModelConfig, digits: Images) -> None:
    state = torch.cuda.get_rng_state()
    training = ProxyTraining(tiny_config, ProxyConfig(epochs=5), digits, 0, "cuda")
    *_, last = training
    assert last.top1 > 80
    assert next(training.model.parameters()).is_cuda
    assert torch.equal(torch.cuda.get_rng_state(), state)


@pytest.mark.parametrize(
    "fields",
    [
        {"optimizer": "muon", "ema_decay": 0.9, "augment": "shift_flip"},
        {"mixup": 0.2, "cutmix": 1.0, "random_erasing": 0.5, "augment": "crop_flip"},
        {"micro_batch_size": 8, "color_jitter": 0.4, "similarity_penalty": {"weight": 0.1}},
    ],
)
def test_the_steps_of_an_epoch_read_no_number(
    tiny_config: ModelConfig, digits: Images, fields: dict[str, Any]
) -> None:
    """A number that is read from a CUDA device is waited for."""
    proxy = ProxyConfig(train_fraction=0.2, batch_size=32, **fields)
    config = tiny_config.model_copy(update={"norm": "batchnorm"})
    training = ProxyTraining(config, proxy, digits, 0)
    with Reads() as reads:
        for batch in training._batches(1):
            training._step(batch, 1e-3)
    assert reads.number == 0


def test_images_that_are_streamed_train_as_those_in_memory(
    tiny_config: ModelConfig, digits: Images
) -> None:
    train, val = digits.train.streamed("cpu"), digits.val.streamed("cpu")
    streamed = replace(digits, train=train, val=val)
    assert _curve(tiny_config, streamed) == _curve(tiny_config, digits)
    assert torch.equal(streamed.fold(1).train.x, digits.fold(1).train.x)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_images_that_do_not_fit_on_a_device_come_to_it_in_batches(
    tiny_config: ModelConfig, digits: Images, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(data, "RESIDENT", share)
    proxy = SHORT.model_copy(update={"augment": "none"})
    training = ProxyTraining(tiny_config, proxy, digits, 0, "cuda")
    assert isinstance(training.images.train.pixels, Rows) == (share == 0)
    seen = torch.cat([batch.x for batch in training._batches(1)])
    whole = digits.train.subset(SHORT.train_fraction, digits.split_seed)
    assert seen.is_cuda
    assert float(seen.double().sum()) == pytest.approx(
        float(whole.normalise(whole.x).double().sum())
    )
    assert len(list(training)) == 2


def test_more_images_than_were_read_cannot_be_trained_on(
    tiny_config: ModelConfig, digits: Images
) -> None:
    few = replace(digits, fraction=0.1)
    with pytest.raises(ValueError, match=r"only 0\.1 of the training images were read"):
        ProxyTraining(tiny_config, SHORT, few, 0)


@pytest.mark.slow
def test_a_recipe_s_curve_is_the_same_alone_and_beside_another(
    tiny_config: ModelConfig, digits: Images
) -> None:
    """Mixing and erasing draw from global generators, in an order that others must not change."""
    proxy = ProxyConfig(
        epochs=2, train_fraction=0.2, mixup=0.8, cutmix=1.0, random_erasing=0.5, ema_decay=0.9
    )

    def training(seed: int) -> ProxyTraining:
        return ProxyTraining(tiny_config, proxy, digits, seed)

    alone = [[each.loss for each in training(seed)] for seed in (1, 2)]
    beside = list(zip(training(1), training(2), strict=True))
    assert [[each.loss for each in one] for one in zip(*beside, strict=True)] == alone


def test_a_recipe_s_drop_path_replaces_the_network_s(
    tiny_config: ModelConfig, digits: Images
) -> None:
    proxy = SHORT.model_copy(update={"drop_path_rate": 0.5})
    model = ProxyTraining(tiny_config, proxy, digits, 0).model
    assert isinstance(model, HybridTransformer)
    assert model.config.drop_path_rate == 0.5
    assert _curve(tiny_config, digits) != _curve(tiny_config, digits, proxy=proxy)
