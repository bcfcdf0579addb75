"""What a back end is, and which one options ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from vitnas.config.data import DataConfig
from vitnas.config.space import SearchSpace
from vitnas.data.telling import SILENT, Teller
from vitnas.engine.backends.prepare import Findings
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.worker import Trained
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.decide.steering import Steering
from vitnas.engine.declare import BackendOptions
from vitnas.errors import RunError


class Backend(Protocol):
    """Where trainings run.

    Attributes:
        resources: what it has found or was told to use.

    `prepare` comes first, and tells what it reads. Called again for another space of the same data,
    it reads no image twice.
    """

    resources: Resources

    def prepare(
        self, space: SearchSpace, most_baselines: int = 0, teller: Teller = SILENT
    ) -> Findings: ...
    def train(self, steering: Steering, scratch: Path) -> None: ...
    def score(self, networks: Sequence[Trained]) -> list[float]: ...
    def answers(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]: ...
    def close(self) -> None: ...


def opening(options: BackendOptions) -> str:
    """What opening the back end does."""
    if options.backend == "serial":
        return "loading torch"
    joins = options.ray_address is not None
    return f"joining the cluster at {options.ray_address}" if joins else "starting Ray"


def open_backend(options: BackendOptions, data: DataConfig) -> Backend:
    """Start or join what trains, before anything is written.

    A folder of `data` that is missing here is refused before that, because it takes a while. On a
    cluster only its nodes need the folder.
    """
    if options.ray_address is None:
        from vitnas.data.there import check_there

        check_there(data)
    if options.backend == "serial":
        if options.ray_address is not None:
            raise RunError(
                f"--ray-address {options.ray_address}: --backend serial uses no cluster; drop one"
            )
        from vitnas.engine.backends.serial import SerialBackend

        return SerialBackend(options.gpus_per_trial)
    from vitnas.engine.backends.parallel import RayBackend

    return RayBackend(options.workers, options.gpus_per_trial, options.ray_address)
