"""The back end on Ray: trainings in processes of this machine or of a cluster.

The driver holds neither torch nor images. Another process of its machine reads the images. They
stay in Ray's object store, and every worker fetches them once. Those on disk are not put there:
workers of this machine map the same files of the cache, and the nodes of a cluster fetch them into
their own, see `sending`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitnas.engine.backends.cluster import connect, resources_of, start  # before Ray itself

# isort: split
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vitnas.config.space import SearchSpace
from vitnas.data.telling import SILENT, Teller
from vitnas.engine.backends.mps import shared_cards
from vitnas.engine.backends.prepare import Findings, prepare_worker
from vitnas.engine.backends.relay import Relay
from vitnas.engine.backends.resources import check_devices
from vitnas.engine.backends.sending import RaySender, sender_here
from vitnas.engine.backends.worker import Trained, Worker
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.decide.steering import Steering
from vitnas.errors import VitnasError
from vitnas.records import Outcome

_GLANCE_S = 0.3  # between looks at what the process that reads images tells


class RayBackend:
    """Trains in processes of Ray, on this machine or on a cluster.

    Args:
        workers: trainings at a time; None = as many as there is room for.
        gpus: GPUs, or the share of one, for each; None = 1 where there is one, else 0. With a share
            of one, trainings on this machine share it by MPS (see `shared_cards`).
        address: of a running cluster; None starts Ray on this machine, and `close` ends it.

    Raises:
        DeviceError: this machine has fewer GPUs.
        RunError: nobody answers at `address`, or no node has so many GPUs.
    """

    def __init__(self, workers: int | None, gpus: float | None, address: str | None) -> None:
        self._is_ours, self._worker = False, None
        self._sender: RaySender | None = None
        self._desks: list[Any] = []
        self._ending = contextlib.ExitStack()
        self._notices: tuple[str, ...] = ()
        try:
            if address is not None:
                connect(address)
                self._sender = sender_here()
            elif not ray.is_initialized():
                check_devices(gpus)
                if gpus and gpus < 1:  # before Ray: its processes have the environment of now
                    self._notices = (self._ending.enter_context(shared_cards()).line,)
                start()
                self._is_ours = True
            self.resources = resources_of(workers, gpus, is_local=address is None)
        except BaseException:
            self.close()
            raise

    def prepare(
        self, space: SearchSpace, most_baselines: int = 0, teller: Teller = SILENT
    ) -> Findings:
        """Read the images into Ray's object store; what is known of them, and the baselines.

        Raises:
            DataError, ConfigError: as `prepare_worker`.
        """
        self._release()  # they hold the images of before
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        task = ray.remote(max_calls=1, num_cpus=0, num_returns=2)(prepare_worker)
        with Relay(teller) as relay, _their_own_errors():
            findings, self._worker = task.options(scheduling_strategy=here).remote(
                space,
                self.resources,
                most_baselines,
                self._worker,
                self._sender,
                relay.sender,
            )
            while not ray.wait([findings], timeout=_GLANCE_S)[0]:
                relay.pass_on()
            relay.pass_on()
            found: Findings = ray.get(findings)
        return replace(found, notices=(*found.notices, *self._notices))

    def train(self, steering: Steering, scratch: Path) -> None:
        """Train until the controller has no more jobs.

        Args:
            steering: where results go.
            scratch: a folder for Tune's own files, removed at the end.
        """
        from vitnas.engine.backends.tune import run_tune  # takes seconds to import

        self._release()
        run_tune(steering, self._worker, self.resources, scratch)

    def score(self, networks: Sequence[Trained]) -> list[float]:
        """Top-1 of networks in percent on the test split."""
        self._release()
        task = ray.remote(
            max_calls=1, num_cpus=self.resources.cpu_share, num_gpus=self.resources.gpus
        )(_score)
        with _their_own_errors():
            return list(ray.get(task.remote(self._worker, networks)))

    def answers(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        """Do trainings that no sampler proposes; each with what it gave, when it ends.

        A request is taken when a worker is free, so that it may depend on earlier answers. A worker
        that dies is started again; a training that kills it twice has failed. The workers stay for
        the next call: to import torch takes longer than to train a small network.

        Raises:
            VitnasError: a worker cannot be settled, as where its images are gone.
        """
        asked, running = iter(requests), {}
        desks = self._desks or [self._desk() for _ in range(self.resources.workers)]
        self._desks, idle = [], list(desks)
        try:
            while True:
                while idle and (request := next(asked, None)) is not None:
                    desk = idle.pop()
                    running[desk.answer.remote(self._worker, request)] = desk, request
                if not running:
                    self._desks = desks
                    return
                (done,), _ = ray.wait(list(running), num_returns=1)
                desk, request = running.pop(done)
                idle.append(desk)
                yield request, _answer(done)
        finally:
            for ref in running:  # else Ray prints that it tries them again
                ray.cancel(ref, recursive=False)
            if self._desks is not desks:
                for desk in desks:
                    ray.kill(desk)

    def _release(self) -> None:
        """End the workers of `answers`, which hold cores and cards."""
        for desk in self._desks:
            ray.kill(desk)
        self._desks = []

    def _desk(self) -> Any:
        """A worker in a process of its own, with an answer for each request."""
        options = {"num_cpus": self.resources.cpu_share, "num_gpus": self.resources.gpus}
        kind = ray.remote(max_restarts=-1, max_task_retries=1, **options)(_Desk)
        return kind.remote()

    def close(self) -> None:
        """End Ray if it was started here; leave a cluster as it is."""
        self._release()
        if self._sender is not None:
            ray.kill(self._sender.shelf)
            self._sender = None
        if self._is_ours:
            ray.shutdown()
        self._ending.close()


class _Desk:
    """What a process of Ray runs for a batch.

    It is made without its worker: Ray does not keep what a process was made with, and could not
    start it again.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def answer(self, worker: Worker, request: Request) -> Answer:
        """Do a training; `worker` is settled by the first one."""
        from vitnas.training.device import end_if_broken  # the driver does without torch

        end_if_broken()
        self._worker = self._worker or worker.settle()
        return self._worker.answer(request)


def _answer(done: Any) -> Answer:
    """What a training gave; a failure where its process died again and again."""
    try:
        with _their_own_errors():
            found: Answer = ray.get(done)
    except ray.exceptions.RayActorError:
        return Answer(outcome=Outcome.FAILED, error="its process died twice")
    return found


def _score(worker: Worker, networks: Sequence[Trained]) -> list[float]:
    return worker.settle().score(networks)


@contextlib.contextmanager
def _their_own_errors() -> Iterator[None]:
    """Raise a user's mistake that a task found as what it is."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, VitnasError):
            raise error.cause from None
        raise
