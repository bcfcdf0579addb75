"""The Ray Tune back end: the only module that imports Ray.

Tune executes and is disposable. Its searcher asks the controller for jobs, its scheduler hands
every result to the controller and returns the answer, and its trainable is a worker that steps
one epoch at a time and is reused for the next trial. Nothing of Tune's own state is kept.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitnas.engine.controller import Decision, Job
from vitnas.engine.steering import Steering
from vitnas.engine.worker import EpochMessage, Worker
from vitnas.errors import RunError

_QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_TRAIN_V2_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",
    "TUNE_WARN_THRESHOLD_S": "1000",
}
os.environ.update({name: os.environ.get(name, value) for name, value in _QUIET.items()})

import ray  # noqa: E402  the environment above is read at import
from ray import tune  # noqa: E402
from ray.tune.schedulers import FIFOScheduler, TrialScheduler  # noqa: E402
from ray.tune.search import Searcher  # noqa: E402

_PATIENCE_S = 10.0


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
        message = _fetch(result["message"])
        decision = self._steering.take(_job_of(trial).number, message)
        stop = decision is Decision.STOP
        return str(TrialScheduler.STOP if stop else TrialScheduler.CONTINUE)

    def on_trial_error(self, controller: Any, trial: Any) -> None:
        """Workers report their own errors as results; what arrives here is a lost worker."""
        reason = str(trial.get_error() or "worker lost").strip().splitlines()[-1][:200]
        self._steering.controller.interrupt(_job_of(trial).number, reason)


class _EpochTrainable(tune.Trainable):  # type: ignore[misc]
    """A worker process: one epoch a step, one job after the other."""

    def setup(self, config: dict[str, Any], worker: Worker) -> None:
        self._worker = worker.settle()
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Drop the last job's model with its iterator and start on the new job."""
        self._messages: Iterator[EpochMessage] | None = None
        _empty_cuda_cache()
        self._messages = self._worker.run(new_config["job"][0])
        return True

    def step(self) -> dict[str, Any]:
        assert self._messages is not None
        return {"message": [ray.put(next(self._messages))]}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing: an interrupted training starts again."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Nothing: an interrupted training starts again."""


def run_tune(
    steering: Steering,
    worker: Worker,
    *,
    workers: int,
    gpus_per_trial: float,
    scratch: Path,
    address: str | None = None,
) -> None:
    """Train with `workers` processes until the controller has no more jobs.

    Args:
        steering: where results go.
        worker: what every process runs; its images travel once through Ray's object store.
        workers: trainings at a time.
        gpus_per_trial: share of a GPU that a training is given; its memory is capped to it.
        scratch: a folder for Tune's own files, removed at the end.
        address: of a running Ray cluster; None starts one on this machine and ends it.

    Raises:
        RunError: nobody answers at `address`, or the cluster has too few GPUs.
        KeyboardInterrupt: Ctrl-C; what was in training is trained again by the next session.
    """
    cpus = worker.threads or 1
    if address is None:
        _start(num_cpus=workers * cpus)
    else:
        connect(address, gpus_per_trial)
    try:
        _check_gpus(gpus_per_trial)
        tuner = _tuner(steering, worker, workers, cpus, gpus_per_trial, scratch)
        tuner.fit()
        if not steering.controller.done:
            raise KeyboardInterrupt  # which Tune answers itself, by ending early
    finally:
        if address is None:
            ray.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


def _tuner(
    steering: Steering,
    worker: Worker,
    workers: int,
    cpus: int,
    gpus: float,
    scratch: Path,
) -> tune.Tuner:
    trainable = tune.with_resources(
        tune.with_parameters(_EpochTrainable, worker=worker), {"cpu": cpus, "gpu": gpus}
    )
    return tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            search_alg=_JobSearcher(steering, workers),
            scheduler=_ControllerScheduler(steering),
            num_samples=-1,
            reuse_actors=True,
            trial_dirname_creator=lambda trial: str(trial.trial_id),
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(scratch.resolve()),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=0),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    )


_SILENT = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}


def _hush() -> None:
    for name in ("ray", "ray.tune", "ray.train", "ray.air"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _start(num_cpus: int) -> None:
    _hush()
    # "local": else Ray joins a cluster that somebody has started on this machine
    ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **_SILENT)


def connect(address: str, gpus_per_trial: float) -> None:
    """Join the cluster at `address`, unless this process has joined one already.

    Raises:
        RunError: nobody answers there, or the cluster has too few GPUs.
    """
    _hush()
    try:
        if not ray.is_initialized():
            _knock(address)
            ray.init(address=address, **_SILENT)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise RunError(f"--ray-address {address}: no Ray cluster answers: {reason}") from None
    _check_gpus(gpus_per_trial)


def _knock(address: str) -> None:
    """Fail within seconds where nobody listens; Ray itself would try for minutes.

    Raises:
        OSError: nobody accepts a connection at `host:port`.
        ValueError: `address` is neither `auto`, `local` nor ends in a port.
    """
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("an address is auto or host:port")
    socket.create_connection((host, int(port)), timeout=_PATIENCE_S).close()


def _check_gpus(gpus_per_trial: float) -> None:
    there = ray.cluster_resources().get("GPU", 0.0)
    if gpus_per_trial > there:
        raise RunError(f"--gpus-per-trial {gpus_per_trial:g}: the cluster has {there:g} GPUs")


def _job_of(trial: Any) -> Job:
    job = trial.config["job"][0]
    assert isinstance(job, Job)
    return job


def _fetch(reference: list[Any]) -> EpochMessage:
    message = ray.get(reference[0], timeout=60.0)
    assert isinstance(message, EpochMessage)
    return message


def _empty_cuda_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
