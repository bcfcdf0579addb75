"""How many cores and threads there are."""

from __future__ import annotations

import os

import pytest

from vitnas.cores import Launch, cores, launch, threads_beside


def test_cores_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of the machine: a batch system gives a part of it."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 6}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_a_training_on_the_cpu_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert (threads_beside(gpu=False), threads_beside(gpu=True)) == (1, 4)


def test_the_place_among_the_processes_is_what_torchrun_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    for told, wanted in (
        (("3", "4", "1", "2"), Launch(3, 4, 1, 2)),
        (("0", "1", "0", "1"), Launch()),
        (("first", "4", "1", "2"), Launch()),
    ):
        for name, value in zip(names, told, strict=True):
            monkeypatch.setenv(name, value)
        assert launch() == wanted
    for name in names:
        monkeypatch.delenv(name)
    assert launch() == Launch(0, 1, 0, 1)


def test_processes_on_one_machine_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "4",
    }.items():
        monkeypatch.setenv(name, value)
    assert threads_beside(gpu=True) == 2
