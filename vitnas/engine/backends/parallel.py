"""The back end on Ray: trainings in processes of this machine or of a cluster.

The driver holds neither torch nor images. Another process of its machine reads the images. They
stay in Ray's object store, and every worker fetches them once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from vitnas.engine.backends.cluster import connect, resources_of, start  # before Ray itself

# isort: split
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vitnas.config.space import SearchSpace
from vitnas.engine.backends.prepare import Findings, prepare_worker
from vitnas.engine.backends.resources import check_devices
from vitnas.engine.backends.worker import Trained, Worker
from vitnas.engine.decide.steering import Steering
from vitnas.errors import VitnasError


class RayBackend:
    """Trains in processes of Ray, on this machine or on a cluster.

    Args:
        workers: trainings at a time; None = as many as there is room for.
        gpus: GPUs, or the share of one, for each; None = 1 where there is one, else 0.
        address: of a running cluster; None starts Ray on this machine, and `close` ends it.

    Raises:
        DeviceError: this machine has fewer GPUs.
        RunError: nobody answers at `address`, or no node has so many GPUs.
    """

    def __init__(self, workers: int | None, gpus: float | None, address: str | None) -> None:
        self._is_ours = False
        if address is not None:
            connect(address)
        elif not ray.is_initialized():
            check_devices(gpus)
            start()
            self._is_ours = True
        try:
            self.resources = resources_of(workers, gpus, is_local=address is None)
        except BaseException:
            self.close()
            raise

    def prepare(self, space: SearchSpace) -> Findings:
        """Read the images into Ray's object store; what is known of them.

        Raises:
            DataError, ConfigError: as `prepare_worker`.
        """
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        task = ray.remote(max_calls=1, num_cpus=0, num_returns=2)(prepare_worker)
        findings, self._worker = task.options(scheduling_strategy=here).remote(
            space, self.resources
        )
        with _their_own_errors():
            found: Findings = ray.get(findings)
        return found

    def train(self, steering: Steering, scratch: Path) -> None:
        """Train until the controller has no more jobs.

        Args:
            steering: where results go.
            scratch: a folder for Tune's own files, removed at the end.
        """
        from vitnas.engine.backends.tune import run_tune  # takes seconds to import

        run_tune(steering, self._worker, self.resources, scratch)

    def score(self, networks: Sequence[Trained]) -> list[float]:
        """Top-1 of networks in percent on the test split."""
        task = ray.remote(
            max_calls=1, num_cpus=self.resources.cpu_share, num_gpus=self.resources.gpus
        )(_score)
        with _their_own_errors():
            return list(ray.get(task.remote(self._worker, networks)))

    def close(self) -> None:
        """End Ray if it was started here; leave a cluster as it is."""
        if self._is_ours:
            ray.shutdown()


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
