"""The back end in this process: one training after the other, no Ray."""

from __future__ import annotations

from vitnas.engine.controller import Decision
from vitnas.engine.steering import Steering
from vitnas.engine.worker import Worker


def run_serial(steering: Steering, worker: Worker) -> None:
    """Train until the controller has no more jobs.

    With the same seed the study is the one that `run_tune` gives with one worker.
    """
    worker = worker.settle()
    while (job := steering.controller.next()) is not None:
        for message in worker.run(job):
            if steering.take(job.number, message) is Decision.STOP:
                break
