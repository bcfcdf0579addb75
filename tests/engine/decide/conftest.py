"""Searches whose accuracies differ by their seed, with and without replicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.conftest import accuracy
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import Decision, Job
from vitnas.engine.decide.replicates import Replication
from vitnas.run import Run
from vitnas.sessions import Data, Environment

Make = Callable[..., Controller]
IMAGES = 400


@pytest.fixture
def replicating(controller_of: Make) -> Make:
    """Opens a controller that wants replicates; calling it again is a new session of the run."""

    def make(replicates: int = 2, **options: Any) -> Controller:
        return controller_of(replication=Replication(replicates, IMAGES), **options)

    return make


def begin(controller: Controller) -> Job:
    """The next job, on its worker."""
    job = controller.next()
    assert job is not None
    controller.began(job.number)
    return job


def noisy(job: Job, epoch: int) -> float:
    """The stand-in accuracy, moved by up to a point as the job's seed says."""
    return accuracy(job, epoch) + job.seed % 201 / 100 - 1


def train(controller: Controller, job: Job) -> None:
    for epoch in range(1, controller.epochs + 1):
        if controller.report(job.number, epoch, noisy(job, epoch)) is Decision.STOP:
            break
    controller.finish(job.number, seconds=1.0, device="cpu")


def finish_all(controller: Controller, most: int = 10_000) -> int:
    """Train until nothing is left or `most` trainings have ended; how many have."""
    for count in range(most):
        job = controller.next()
        if job is None:
            return count
        train(controller, job)
    return most


def made(run: Run) -> Counter[int | None]:
    return Counter(trial.replicate_of for trial in run.replicates)


def facts(run: Run) -> list[tuple[Any, ...]]:
    found = sorted((*run.trials, *run.replicates), key=lambda trial: trial.number)
    return [(t.number, t.key, t.seed, t.replicate_of, t.outcome, t.curve) for t in found]


def of_images(run: Run) -> Run:
    """The run with what it was scored on, which these tests' studies lack."""
    return replace(run, environment=Environment(data=Data(num_val_images=IMAGES)))
