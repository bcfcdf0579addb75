"""Jobs and messages cross processes: they arrive as they were sent, and logs show no weights."""

from __future__ import annotations

import pickle

import pytest

from tests.strategies import random_config
from vitnas.engine.decide.job import EpochDone, Failure, Job, Measured, Message
from vitnas.records import Outcome

SENT: list[Job | Message] = [
    Job(3, random_config(0), seed=7, alone=True),
    Measured({"latency_ms": 1.5}, "cpu"),
    EpochDone(2, 51.25, 3.5, "cpu", b"weights" * 1000),
    Failure(Outcome.OOM, "out of memory", 1.0, "cuda:0"),
]


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: type(sent).__name__)
def test_what_is_sent_arrives(sent: Job | Message) -> None:
    assert pickle.loads(pickle.dumps(sent)) == sent


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: type(sent).__name__)
def test_what_a_log_shows_is_short(sent: Job | Message) -> None:
    assert len(repr(sent)) < 200
    assert "weights" not in repr(sent)
