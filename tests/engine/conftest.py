"""A small space and a store for tests of the engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.config.trees import TREE
from vitnas.config.files import validate
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import Decision, Job
from vitnas.engine.decide.rules import Rules
from vitnas.engine.options import SearchOptions
from vitnas.engine.store.study import RunStore

SMALL = SearchOptions(
    trials=3, workers=1, gpus_per_trial=0.0, seed=1, backend="serial", baselines=False
)


def make_space(**changes: Any) -> SearchSpace:
    return SearchSpace(validate(SpaceConfig, TREE | changes))


@pytest.fixture
def space() -> SearchSpace:
    return make_space()


def open_controller(folder: Path, space: SearchSpace | None = None, **options: Any) -> Controller:
    """A controller on a run; on the same folder again it is a new session of the same run."""
    space = space or make_space()
    defaults: dict[str, Any] = {"num_trials": 8, "sampler": "random"}
    told = {name: options.pop(name) for name in ("listener", "first") if name in options}
    store = RunStore(folder, {"space": space.to_tree(), "seed": 0})
    return Controller(store, space, Rules(**(defaults | options)), **told)


@pytest.fixture
def controller_of(tmp_path: Path) -> Callable[..., Controller]:
    """`open_controller` on one folder."""
    return partial(open_controller, tmp_path)


@pytest.fixture
def shared_ray() -> Any:
    """Ray with two CPUs and one GPU, which is a number and no device; left for the next test."""
    import ray

    from vitnas.engine.backends.cluster import _hush

    _hush()
    if not ray.is_initialized():
        here = {"include_dashboard": False, "log_to_driver": False}
        ray.init(address="local", num_cpus=2, num_gpus=1, **here)
    return ray


@pytest.fixture
def without_ray() -> None:
    """For who starts or joins a Ray of its own."""
    import ray

    ray.shutdown()


def accuracy(job: Job, epoch: int) -> float:
    """A stand-in for a training: higher for more FLOPs and epochs, different for each network."""
    stage = job.config.stages[0]
    score = 40.0 + stage.embed_dim / 2 + stage.depth + 5 * epoch
    return min(score + int(job.config.key, 16) % 100 / 50, 100.0)


def train(controller: Controller, job: Job) -> None:
    """Run a job to its end as a back end does."""
    for epoch in range(1, controller.epochs + 1):
        if controller.report(job.number, epoch, accuracy(job, epoch)) is Decision.STOP:
            break
    controller.finish(job.number, seconds=1.0, device="cpu")


def start(controller: Controller) -> Job:
    """The next job, which there has to be."""
    job = controller.next()
    assert job is not None
    return job


def train_some(controller: Controller, count: int) -> None:
    """Run the next jobs to their ends."""
    for _ in range(count):
        train(controller, start(controller))
