"""What a training is given of its machine: threads, and a share of a GPU's memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from tests.engine.conftest import make_space
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.trials import RandomTrial
from vitnas.engine.backends.prepare import prepare_worker
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.worker import Worker
from vitnas.engine.batch.request import Request
from vitnas.engine.decide.job import Failure, Job
from vitnas.records import Outcome


@pytest.fixture
def _threads_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("_threads_as_before")
@pytest.mark.parametrize("threads", [1, 2])
def test_torch_has_the_threads_of_its_share(threads: int) -> None:
    _, worker = prepare_worker(make_space(), Resources(2, 0.0, threads))
    torch.set_num_threads(3 - threads)
    assert worker.settle().device == "cpu"
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(("gpus", "share"), [(0.25, 0.25), (1 / 3, 1 / 3), (1.0, 1.0), (2.0, 1.0)])
def test_the_memory_of_a_gpu_is_capped_to_the_share(
    monkeypatch: pytest.MonkeyPatch, gpus: float, share: float
) -> None:
    """Ray only keeps count of shares. Without a GPU, only what CUDA is told can be looked at."""
    told: list[tuple[float, int]] = []
    monkeypatch.setattr(torch.cuda.memory, "_lazy_init", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(
        torch._C, "_cuda_setMemoryFraction", lambda *what: told.append(what), raising=False
    )
    worker = Worker(
        make_space().config.proxy, {}, "cuda", gpu_share=Resources(1, gpus, 1).memory_share
    )
    config = make_space().suggest(RandomTrial(0))
    for alone in (False, True):
        (message,) = worker.run(Job(0, config, 0, alone=alone))
        assert isinstance(message, Failure), "there are no images"
        assert message.outcome is Outcome.FAILED
    assert told == [(share, 0), (1.0, 0)]
    told.clear()
    list(replace(worker, device="cpu").run(Job(0, config, 0)))
    assert not told


def test_a_network_that_is_larger_than_the_memory_has_an_outcome() -> None:
    _, worker = prepare_worker(make_space(), Resources(1, 0.0, 1))
    tree = make_space().suggest(RandomTrial(0)).to_tree()
    huge = [{"token_mixer": "pool", "embed_dim": 1_000_000}]
    (message,) = worker.run(
        Job(0, validate(ModelConfig, {**tree, "groups": "[1]", "stages": huge}), 0)
    )
    assert isinstance(message, Failure)
    assert message.outcome is Outcome.OOM
    assert "GiB are free" in message.error


Prepared = tuple[SearchSpace, Worker, ModelConfig]


@pytest.fixture
def prepared() -> Prepared:
    """A space, a worker for it, and one of its networks."""
    space = make_space()
    _, worker = prepare_worker(space, Resources(1, 0.0, 1))
    return space, worker, space.suggest(RandomTrial(0))


def test_scores_at_initialisation_need_no_other_fold(prepared: Prepared) -> None:
    """There are far too few images to train on so many folds."""
    space, worker, config = prepared
    request = Request(config, space.config.proxy, 0, zero_cost=True)
    folded = {size: replace(images, folds=1000) for size, images in worker.images.items()}
    answers = [one.answer(request) for one in (worker, replace(worker, images=folded))]
    assert [one.error for one in answers] == [None, None]
    once, same = ({name: value for name, (value, _) in one.scores.items()} for one in answers)
    assert once == same


@pytest.mark.slow
def test_with_folds_the_test_score_is_that_of_the_first_ones_network(prepared: Prepared) -> None:
    """As a candidate's, which is that of the weights that are kept."""
    space, worker, config = prepared
    request = Request(config, space.config.proxy, 0, test=True)
    folded = {size: replace(images, folds=3) for size, images in worker.images.items()}
    alone, three = (one.answer(request) for one in (worker, replace(worker, images=folded)))
    assert alone.test_top1 == three.test_top1 is not None
    assert alone.curve != three.curve


def test_a_request_may_be_for_some_of_the_classes(prepared: Prepared) -> None:
    space, worker, config = prepared
    half = ModelConfig.model_validate(config.to_tree() | {"num_classes": 5})
    asked = Request(half, space.config.proxy, 0, test=True, some_classes=True)
    whole = worker.answer(Request(config, space.config.proxy, 0, test=True))
    fewer = worker.answer(asked)
    assert fewer.error is None
    assert len(fewer.curve) == len(whole.curve)
    assert fewer.curve[-1] > whole.curve[-1]  # of five classes chance alone is right twice as often


def test_a_network_for_other_classes_is_refused_where_nobody_asked_for_some(
    prepared: Prepared,
) -> None:
    space, worker, config = prepared
    half = ModelConfig.model_validate(config.to_tree() | {"num_classes": 5})
    (message,) = worker.run(Job(0, half, 0))
    assert isinstance(message, Failure)
    assert "num_classes = 5: these images of digits have 10" in message.error
    assert "num_classes = 5" in str(worker.answer(Request(half, space.config.proxy, 0)).error)
