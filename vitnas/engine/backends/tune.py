"""Trainings through Ray Tune.

Tune executes and is disposable. Its searcher asks the controller for jobs, its scheduler hands
every result to the controller and returns the answer, and its trainable is a worker that steps
one epoch at a time and is reused for the next trial. Nothing of Tune's own state is kept.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitnas.engine.backends import cluster  # before Ray: it says how quiet Ray shall be

# isort: split
import ray
from ray import tune
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.worker import summary
from vitnas.engine.decide.job import Decision, Failure, Job, Measured, Message
from vitnas.engine.decide.steering import Steering
from vitnas.records import Outcome

assert cluster


class _Unpickled:
    """Tune pickles its parts for a restore that is never made; ours hold a study and a terminal."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


class _JobSearcher(_Unpickled, Searcher):  # type: ignore[misc]
    """Asks the controller for the next job, never further ahead than there are workers."""

    def __init__(self, steering: Steering, workers: int) -> None:
        super().__init__()
        self._controller = steering.controller
        self._workers = workers

    def suggest(self, trial_id: str) -> Any:
        if self._controller.num_in_flight >= self._workers:
            return None
        job = self._controller.next()
        if job is None:
            return Searcher.FINISHED if self._controller.done else None
        return {"job": [job]}  # in a list: Tune would take a mapping apart

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """The scheduler has told the controller already."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the study is the state."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: the study is the state."""


class _ControllerScheduler(_Unpickled, FIFOScheduler):  # type: ignore[misc]
    """Answers every result with the controller's decision."""

    def __init__(self, steering: Steering) -> None:
        super().__init__()
        self._steering = steering

    def on_trial_result(self, controller: Any, trial: Any, result: dict[str, Any]) -> str:
        message = result["message"].pop()  # Tune keeps the last result of every trial for good
        decision = self._steering.take(_job_of(trial).number, message)
        stop = decision is Decision.STOP
        return str(TrialScheduler.STOP if stop else TrialScheduler.CONTINUE)

    def on_trial_complete(self, controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """Empty a trial that is not needed again, because Tune keeps every trial to its end."""
        trial.config["job"].clear()
        trial.run_metadata.metric_analysis.clear()
        trial.run_metadata.metric_n_steps.clear()

    def on_trial_error(self, controller: Any, trial: Any) -> None:
        """Workers report their own errors as results; what arrives here is a lost worker."""
        reason = str(trial.get_error() or "worker lost").strip().splitlines()[-1][:200]
        self._steering.lose(_job_of(trial).number, reason)


class _Clock(_Unpickled, tune.Callback):  # type: ignore[misc]
    """Tells when a training begins, which may be long after its worker was asked for."""

    def __init__(self, steering: Steering) -> None:
        self._controller = steering.controller

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._controller.began(_job_of(trial).number)


class _EpochTrainable(tune.Trainable):  # type: ignore[misc]
    """A worker process: one epoch a step, one job after the other."""

    def setup(
        self, config: dict[str, Any], worker: list[Any], trial_seconds: float | None = None
    ) -> None:
        self._trial_seconds = trial_seconds
        self._problem = ""
        try:
            self._worker = ray.get(worker[0]).settle()
        except Exception as error:  # every job reports it; it does not count as a lost worker
            self._problem = summary(error)
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Drop the last job's model with its iterator and start on the new job."""
        from vitnas.training.device import end_if_broken  # the driver does without torch

        self._messages: Iterator[Message] = iter(())
        end_if_broken()
        (job,) = new_config["job"]
        self.config: dict[str, Any] = {}  # or it comes back with every result
        self._began = time.monotonic()
        if self._problem:
            self._messages = iter((Failure(Outcome.FAILED, self._problem),))
        else:
            self._messages = self._worker.run(job)
        return True

    def step(self) -> dict[str, Any]:
        with self._watched():
            message = next(self._messages)
        if isinstance(message, Measured):  # waiting for others is not the network's fault
            self._began = time.monotonic()
        return {"message": [message]}

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """End this process when an epoch hangs beyond what its training may take.

        The driver ends a late training after its epoch; the grace period leaves time for this.
        """
        if self._trial_seconds is None:
            yield
            return
        due = self._began + 1.1 * self._trial_seconds + 5.0
        faulthandler.dump_traceback_later(max(0.1, due - time.monotonic()), exit=True)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing: an interrupted training starts again."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Nothing: an interrupted training starts again."""


def run_tune(steering: Steering, worker: Any, resources: Resources, scratch: Path) -> None:
    """Train with processes of the Ray that was started or joined, until nothing is left to do.

    Args:
        steering: where results go.
        worker: Ray's reference to what every process runs.
        resources: how many processes, and what each is given.
        scratch: a folder for Tune's own files, removed at the end.
    """
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(resources.workers)  # all start at once
    try:
        with _unwrapped():
            _tuner(steering, worker, resources, scratch).fit()
        if not steering.controller.done:
            raise RuntimeError("Ray Tune ended before the search was done")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _tuner(steering: Steering, worker: Any, resources: Resources, scratch: Path) -> tune.Tuner:
    def share(config: dict[str, Any]) -> tune.PlacementGroupFactory:
        gpus = resources.gpus
        if gpus and config["job"][0].alone:
            gpus = max(1.0, gpus)
        return tune.PlacementGroupFactory([{"CPU": resources.cpu_share, "GPU": gpus}])

    trainable = tune.with_resources(
        tune.with_parameters(
            _EpochTrainable, worker=[worker], trial_seconds=steering.trial_seconds
        ),
        share,
    )
    return tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            search_alg=_JobSearcher(steering, resources.workers),
            scheduler=_ControllerScheduler(steering),
            num_samples=-1,
            reuse_actors=True,
            trial_dirname_creator=lambda trial: str(trial.trial_id),
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(scratch.resolve()),
            verbose=0,
            callbacks=[_Clock(steering)],
            failure_config=tune.FailureConfig(max_failures=0),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    )


@contextlib.contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise what the controller raised inside Tune, not what Tune made of it."""
    try:
        yield
    except Exception as error:
        inner: BaseException | None = error
        while inner is not None and type(inner).__module__.startswith("ray."):
            inner = inner.__cause__ or inner.__context__
        raise (inner or error) from None


def _job_of(trial: Any) -> Job:
    job = trial.config["job"][0]
    assert isinstance(job, Job)
    return job
