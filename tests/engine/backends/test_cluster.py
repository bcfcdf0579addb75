"""Joining Ray: who answers, what there is room for, two nodes, and a node that leaves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import make_space
from vitnas.cores import cores
from vitnas.engine.backends import cluster
from vitnas.engine.backends.cluster import connect, room
from vitnas.engine.backends.parallel import RayBackend
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import DeviceError, RunError
from vitnas.records import Outcome, TrialRecord
from vitnas.run import Run


@contextmanager
def listener(answer: bytes | None) -> Iterator[str]:
    """Something that accepts connections and says `answer`, or nothing; its address."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(5)
        lines: list[socket.socket] = []

        def serve() -> None:
            try:
                line, _ = server.accept()
            except OSError:
                return
            lines.append(line)
            if answer is not None:
                line.recv(100)
                line.sendall(answer)
                line.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for line in lines:
            line.close()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
)
def test_who_is_not_ray_is_told_so_soon(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None
) -> None:
    """Ray itself tries for two minutes and then ends the process."""
    monkeypatch.setattr(cluster, "_PATIENCE_S", 0.3)
    with listener(answer) as address, pytest.raises(RunError) as error:
        connect(address)
    reason = "something listens, and `ray status` is silent for 0.3 s"
    assert str(error.value) == f"--ray-address {address}: no Ray cluster answers: {reason}"


def test_nobody_to_join(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(
        RunError, match="--ray-address auto: no Ray cluster answers: Could not find"
    ):
        connect("auto")
    with pytest.raises(RunError, match="an address is auto or host:port"):
        connect("somewhere")
    with pytest.raises(RunError, match="ray:// is Ray's client; start the search on a machine of"):
        connect("ray://10.0.0.1:10001")


@pytest.mark.parametrize("said_by", ["environment", "ray start"])
def test_a_cluster_that_has_ended_is_told_so_soon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said_by: str
) -> None:
    """`auto` stands for an address; Ray itself would try there for minutes."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    if said_by == "environment":
        monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    else:
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
    with pytest.raises(RunError, match=r"--ray-address auto: .* answers: .*refused"):
        connect("auto")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "Traceback (most recent call last):\n  ...\nray.exceptions.AuthenticationError: RPC "
            "error: InvalidAuthToken: Authentication token is missing or incorrect. Note: ...",
            "it asks for Ray's token: set RAY_AUTH_MODE=token where that token is",
        ),
        ("...\nConnectionError: gone\n", "`ray status` fails there: ConnectionError: gone"),
        ("", "`ray status` fails there: "),
    ],
)
def test_why_a_cluster_cannot_be_joined_is_short(said: str, reason: str) -> None:
    """`ray start` asks for a token as soon as `~/.ray` has one, which a local search leaves."""
    assert cluster._why_not(said) == reason


NODES: dict[str, tuple[list[dict[str, float]], float, tuple[int, int]]] = {
    "cores": ([{"CPU": 4.0}, {"CPU": 8.0}, {}], 0.0, (12, 1)),
    "shares of GPUs": ([{"CPU": 16.0, "GPU": 8.0}], 0.25, (32, 1)),
    "thirds": ([{"CPU": 16.0, "GPU": 1.0}], 1 / 3, (3, 5)),
    "whole GPUs": ([{"CPU": 64.0, "GPU": 8.0}, {"CPU": 16.0, "GPU": 4.0}], 1.0, (12, 4)),
    "two GPUs each": ([{"CPU": 8.0, "GPU": 3.0}, {"CPU": 64.0}], 2.0, (1, 8)),
}


@pytest.mark.parametrize("nodes", sorted(NODES))
def test_room_for_trainings(nodes: str) -> None:
    resources, gpus, expected = NODES[nodes]
    assert room(resources, gpus) == expected


SMALL = SearchOptions(
    trials=10,
    gpus_per_trial=0.0,
    seed=3,
    sampler="random",
    pruner="none",
    backend="serial",
    baselines=False,
)


def start_cluster(nodes: int) -> tuple[Any, list[Any]]:
    """A head without CPUs and nodes with one each; all on this machine."""
    from ray.cluster_utils import Cluster

    args = {"num_cpus": 0, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=args)
    return made, [made.add_node(num_cpus=1) for _ in range(nodes)]


@pytest.fixture
def two_nodes(without_ray: None) -> Iterator[tuple[Any, list[Any]]]:
    import ray

    made, nodes = start_cluster(2)
    try:
        yield made, nodes
    finally:
        ray.shutdown()
        made.shutdown()


def front_of(run: Run) -> set[tuple[str, tuple[float, ...], float | None]]:
    return {(trial.key, trial.curve, trial.test_top1) for trial in run.front}


@pytest.mark.nightly
def test_two_nodes_give_one_worker_s_front(
    two_nodes: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    """Trainings are functions of network and seed, so only their order differs."""
    alone = run_search(make_space(), tmp_path / "alone", SMALL)
    options = replace(SMALL, backend="tune", ray_address=two_nodes[0].address)
    both = run_search(make_space(), tmp_path / "both", options)
    assert both.environment.last.workers == 2
    assert front_of(both) == front_of(alone)
    assert {t.key for t in both.complete} == {t.key for t in alone.complete}


@pytest.mark.slow
def test_a_node_that_leaves_changes_no_front(
    two_nodes: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    made, nodes = two_nodes
    alone = run_search(make_space(), tmp_path / "alone", SMALL)
    left: list[int] = []

    def leave(event: str, trial: TrialRecord) -> None:
        if event == "epoch" and not left:
            left.append(trial.number)
            made.remove_node(nodes[0], allow_graceful=False)

    options = replace(SMALL, backend="tune", ray_address=made.address)
    fewer = run_search(make_space(), tmp_path / "fewer", options, Watcher(listener=leave))
    assert left
    assert front_of(fewer) == front_of(alone)
    assert len(fewer.complete) == 10
    assert not fewer.count(Outcome.RUNNING)


@pytest.mark.slow
def test_a_cluster_of_somebody_else_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, without_ray: None
) -> None:
    """Where no address is given Ray itself joins what the environment or a file of its names."""
    import ray

    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    backend = RayBackend(1, 0.0, None)
    try:
        (node,) = ray.nodes()
        assert node["Resources"]["CPU"] == cores()
    finally:
        backend.close()
    assert not ray.is_initialized()


@pytest.mark.slow
def test_more_gpus_than_a_node_has(two_nodes: tuple[Any, list[Any]], tmp_path: Path) -> None:
    options = replace(SMALL, backend="tune", ray_address=two_nodes[0].address, gpus_per_trial=0.5)
    with pytest.raises(RunError, match=r"--gpus-per-trial 0\.5: no node of the cluster has more"):
        run_search(make_space(), tmp_path / "run", options)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_more_gpus_than_this_machine_has(tmp_path: Path, shared_ray: Any) -> None:
    """Logical ones: nothing of the one is used."""
    options = replace(SMALL, backend="tune", gpus_per_trial=4.0)
    with pytest.raises(DeviceError, match="--gpus-per-trial 4: this machine has 1 GPUs"):
        run_search(make_space(), tmp_path / "run", options)
    options = replace(SMALL, backend="tune", gpus_per_trial=0.5, workers=5)
    with pytest.raises(DeviceError, match="--workers 5: 1 GPUs have room for 2 trainings"):
        run_search(make_space(), tmp_path / "run", options)
    assert shared_ray.is_initialized(), "it was there before"
    assert not (tmp_path / "run").exists()


def test_serial_uses_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="--ray-address auto: --backend serial uses no cluster"):
        run_search(make_space(), tmp_path / "run", replace(SMALL, ray_address="auto"))
