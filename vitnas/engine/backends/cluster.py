"""Ray: starting or joining it, what it has room for, and the back end that trains on it.

The driver holds neither torch nor images: they are read in a process of the driver's machine, and
stay in Ray's object store, from where every worker takes them once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vitnas.config.space import SearchSpace
from vitnas.cores import cores, threads_beside
from vitnas.engine.backends.resources import Resources, check_devices
from vitnas.engine.backends.steering import Steering
from vitnas.engine.backends.worker import Trained, Worker, prepare_worker
from vitnas.errors import DeviceError, RunError, VitnasError

_QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_TRAIN_V2_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",
    "TUNE_WARN_THRESHOLD_S": "1000",
}
os.environ.update({name: os.environ.get(name, value) for name, value in _QUIET.items()})

import ray  # noqa: E402  the environment above is read at import
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: E402

_SILENT = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
_PATIENCE_S = 10.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


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
            _hush()
            # "local": else Ray joins a cluster that somebody has started on this machine
            ray.init(address="local", num_cpus=cores(), include_dashboard=False, **_SILENT)
            self._is_ours = True
        try:
            self.resources = _resources(workers, gpus, is_local=address is None)
        except BaseException:
            self.close()
            raise

    def prepare(self, space: SearchSpace) -> Mapping[str, Any]:
        """Read the images into Ray's object store; what is known of them.

        Raises:
            DataError, ConfigError: as `prepare_worker`.
        """
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        task = ray.remote(max_calls=1, num_cpus=0, num_returns=2)(prepare_worker)
        facts, self._worker = task.options(scheduling_strategy=here).remote(space, self.resources)
        with _their_own_errors():
            found: Mapping[str, Any] = ray.get(facts)
        return found

    def train(self, steering: Steering, scratch: Path) -> None:
        """Train until the controller has no more jobs.

        Args:
            steering: where results go.
            scratch: a folder for Tune's own files, removed at the end.
        """
        from vitnas.engine.backends.tune import run_tune

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


def _resources(workers: int | None, gpus: float | None, *, is_local: bool) -> Resources:
    """Fill in what was not said from what Ray knows of its nodes."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most = max((node.get("GPU", 0.0) for node in nodes), default=0.0)
    if gpus is None:
        gpus = 1.0 if most else 0.0
    if gpus > most and is_local:
        raise DeviceError(f"--gpus-per-trial {gpus:g}: this machine has {most:g} GPUs")
    if gpus > most:
        raise RunError(f"--gpus-per-trial {gpus:g}: no node of the cluster has more than {most:g}")
    room, cpus = _room(nodes, gpus)
    if workers is not None and workers > room and gpus and is_local:
        raise DeviceError(
            f"--workers {workers}: {most:g} GPUs have room for {room} trainings with "
            f"--gpus-per-trial {gpus:g}"
        )
    workers = workers or room
    total = sum(node.get("CPU", 0.0) for node in nodes)
    # A worker more than there are cores is somebody's wish on one machine; on a cluster it waits
    # for a node to join.
    share = min(float(cpus), int(1e4 * total / workers) / 1e4) if is_local else float(cpus)
    return Resources(workers, gpus, cpus, share)


def _room(nodes: Sequence[Mapping[str, float]], gpus: float) -> tuple[int, int]:
    """How many trainings the nodes have room for, and how many CPUs for each.

    On the CPU a training has one thread: its result must not depend on how many run beside it.
    """
    if not gpus:
        return max(1, sum(int(node.get("CPU", 0)) for node in nodes)), threads_beside(False)
    rooms = [(int(n.get("GPU", 0) / gpus + 1e-9), n.get("CPU", 0.0)) for n in nodes]
    cpus = min((int(there // count) for count, there in rooms if count), default=1)
    return max(1, sum(count for count, _ in rooms)), max(1, cpus)


def connect(address: str) -> None:
    """Join the cluster at `address`, unless this process has joined one already.

    This vitnas travels to the nodes; what it imports has to be there.

    Raises:
        RunError: nobody answers there.
    """
    _hush()
    if ray.is_initialized():
        return
    package = str(Path(__file__).resolve().parents[2])
    try:
        found = _find(address)
        _knock(found)
        ray.init(address=found, runtime_env={"py_modules": [package]}, **_SILENT)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise RunError(f"--ray-address {address}: no Ray cluster answers: {reason}") from None


def _hush() -> None:
    for name in ("ray", "ray.train", "ray.air"):
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # a lost worker is no error of ours


def _find(address: str) -> str:
    """What `auto` stands for: `RAY_ADDRESS`, or what `ray start` has noted on this machine.

    Ray itself would then look for any Ray on this machine, also for another search's own.

    Raises:
        ValueError: neither is there.
    """
    if address != "auto":
        return address
    found = os.environ.get("RAY_ADDRESS") or ray._private.utils.read_ray_address()
    if not found:
        raise ValueError("Could not find one: RAY_ADDRESS is not set, and no ray start ran here")
    return str(found)


def _knock(address: str) -> None:
    """Fail within seconds where nobody listens; Ray itself would try for minutes.

    Raises:
        OSError: nobody accepts a connection at `host:port`, or it is not a gRPC server.
        ValueError: `address` does not end in a port, or is that of Ray's client.
    """
    if address.startswith("ray://"):
        raise ValueError(
            "ray:// is Ray's client; start the search on a machine of the cluster, with auto or "
            "host:port"
        )
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("an address is auto or host:port")
    with socket.create_connection((host, int(port)), timeout=_PATIENCE_S) as line:
        if os.environ.get("RAY_USE_TLS", "0").lower() not in ("1", "true"):
            _expect_grpc(line)


def _expect_grpc(line: socket.socket) -> None:
    """Greet as HTTP/2 does; Ray's server, as every gRPC server, answers with its settings."""
    line.settimeout(_PATIENCE_S)
    line.sendall(_PREFACE)
    try:
        answer = line.recv(9)
    except TimeoutError:
        raise OSError(f"connected, but silent for {_PATIENCE_S:g} s") from None
    if len(answer) < 4 or answer[3] != 4:  # a frame's type stands fourth; 4 is settings
        raise OSError("something else listens there")


@contextlib.contextmanager
def _their_own_errors() -> Iterator[None]:
    """Raise a user's mistake that a task found as what it is."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, VitnasError):
            raise error.cause from None
        raise
