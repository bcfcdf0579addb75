"""The back end in this process: one training after the other, no Ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vitnas.config.space import SearchSpace
from vitnas.cores import threads_beside
from vitnas.data.telling import SILENT, Teller
from vitnas.engine.backends.prepare import Findings, prepare_worker
from vitnas.engine.backends.resources import Resources, check_devices
from vitnas.engine.backends.worker import Trained
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.decide.job import Decision
from vitnas.engine.decide.steering import Steering


class SerialBackend:
    """Trains in this process.

    With the same seed, the study is the same as with Ray and one worker. A training that takes too
    long ends after its epoch; a training that hangs inside an epoch does not end.

    Args:
        gpus: 0 for the CPU; above it, the share of a GPU's memory; None = a GPU where there is one.

    Raises:
        DeviceError: a GPU was asked for and there is none.
    """

    def __init__(self, gpus: float | None) -> None:
        check_devices(gpus)
        import torch

        from vitnas.training.device import check_cuda

        there = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if gpus is None:
            gpus = 1.0 if there else 0.0
        if gpus:
            check_cuda(f"--gpus-per-trial {gpus:g}:")
        self.resources = Resources(1, gpus, threads_beside(bool(gpus)))
        self._worker: Any = None

    def prepare(
        self, space: SearchSpace, most_baselines: int = 0, teller: Teller = SILENT
    ) -> Findings:
        """Read the images; what is known of them, and the baselines."""
        findings, worker = prepare_worker(
            space, self.resources, most_baselines, self._worker, teller=teller
        )
        self._worker = worker.settle()
        return findings

    def train(self, steering: Steering, scratch: Path) -> None:
        """Train until the controller has no more jobs."""
        while (job := steering.controller.next()) is not None:
            steering.controller.began(job.number)
            for message in self._worker.run(job):
                if steering.take(job.number, message) is Decision.STOP:
                    break

    def score(self, networks: Sequence[Trained]) -> list[float]:
        """Top-1 of networks in percent on the test split."""
        return list(self._worker.score(networks))

    def answers(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        """Do trainings that no sampler proposes; each with what it gave, when it ends."""
        for request in requests:
            yield request, self._worker.answer(request)

    def close(self) -> None:
        """Nothing is held."""
