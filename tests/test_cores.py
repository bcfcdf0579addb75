"""How many cores and threads there are."""

from __future__ import annotations

import os

import pytest

from vitnas.cores import cores, threads_beside


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
