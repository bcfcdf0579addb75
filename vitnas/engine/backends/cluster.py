"""Ray: starting it, joining it, and what it has room for."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitnas.cores import cores, threads_beside
from vitnas.engine.backends.resources import Resources
from vitnas.errors import DeviceError, RunError

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

_SILENT = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
_PATIENCE_S = 20.0


def resources_of(workers: int | None, gpus: float | None, *, is_local: bool) -> Resources:
    """Take the options that were not given from what Ray knows of its nodes."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most = max((node.get("GPU", 0.0) for node in nodes), default=0.0)
    if gpus is None:
        gpus = 1.0 if most else 0.0
    if gpus > most and is_local:
        raise DeviceError(f"--gpus-per-trial {gpus:g}: this machine has {most:g} GPUs")
    if gpus > most:
        raise RunError(f"--gpus-per-trial {gpus:g}: no node of the cluster has more than {most:g}")
    places, cpus = room(nodes, gpus)
    if workers is not None and workers > places and gpus and is_local:
        raise DeviceError(
            f"--workers {workers}: {most:g} GPUs have room for {places} trainings with "
            f"--gpus-per-trial {gpus:g}"
        )
    workers = workers or places
    total = sum(node.get("CPU", 0.0) for node in nodes)
    # On one machine, the user may ask for more workers than cores. On a cluster, the additional
    # workers wait for a node to join.
    share = min(float(cpus), int(1e4 * total / workers) / 1e4) if is_local else float(cpus)
    return Resources(workers, gpus, cpus, share)


def room(nodes: Sequence[Mapping[str, float]], gpus: float) -> tuple[int, int]:
    """How many trainings the nodes have room for, and how many CPUs for each.

    On the CPU a training has one thread, so that its result does not depend on parallel trainings.
    """
    if not gpus:
        return max(1, sum(int(node.get("CPU", 0)) for node in nodes)), threads_beside(False)
    rooms = [(int(n.get("GPU", 0) / gpus + 1e-9), n.get("CPU", 0.0)) for n in nodes]
    cpus = min((int(there // count) for count, there in rooms if count), default=1)
    return max(1, sum(count for count, _ in rooms)), max(1, cpus)


def start() -> None:
    """Start Ray on this machine, for this process alone."""
    _hush()
    # "local": else Ray joins a cluster that another user has started on this machine
    _init(address="local", num_cpus=cores(), include_dashboard=False)


def connect(address: str) -> None:
    """Join the cluster at `address`, unless this process has joined one already.

    Ray copies this vitnas to the nodes. The packages that it imports must be installed there.

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
        _init(address=found, runtime_env={"py_modules": [package]})
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise RunError(f"--ray-address {address}: no Ray cluster answers: {reason}") from None


def _init(**options: Any) -> None:
    """`ray.init`, which takes SIGTERM for itself and prints a stack at it; it is given back."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options, **_SILENT)
    except SystemExit:  # so Ray answers a SIGTERM in here
        if callable(before):
            before(signal.SIGTERM, None)
        raise
    finally:
        # None: a handler that is not Python's, which Python cannot set again
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


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
    """Fail within seconds where no cluster answers; Ray itself would try for minutes.

    Raises:
        OSError: nobody accepts a connection at `host:port`, or it is no cluster that answers.
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
    socket.create_connection((host, int(port)), timeout=_PATIENCE_S).close()
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=True)
    except subprocess.TimeoutExpired:
        raise OSError(
            f"something listens, and `ray status` is silent for {_PATIENCE_S:g} s"
        ) from None
    except subprocess.CalledProcessError as error:
        raise OSError(_why_not(error.stderr.decode(errors="replace"))) from None


def _why_not(said: str) -> str:
    """The reason in what a failing `ray status` printed: its last line, or what to do about it."""
    last = "".join(said.strip().splitlines()[-1:])
    if "AuthenticationError" in last:  # Ray never sends a token to an address unasked
        return "it asks for Ray's token: set RAY_AUTH_MODE=token where that token is"
    return f"`ray status` fails there: {last}"
