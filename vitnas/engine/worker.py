"""Running one job on a device: what both back ends execute, in this process or in another."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vitnas.config.training import ProxyConfig
from vitnas.engine.controller import Job
from vitnas.records import Outcome

if TYPE_CHECKING:
    from vitnas.training.data import Images


@dataclass(frozen=True)
class EpochMessage:
    """What a training says after an epoch, or when it could not go on.

    Attributes:
        epoch: from 1; 0 when the training failed before its first epoch ended.
        top1: percent on the scoring split.
        seconds: wall time since the training started.
        device: name of the device it runs on.
        weights: the network as safetensors bytes, with the last epoch only.
        outcome: why it could not go on: `failed`, `diverged` or `oom`; None while all is well.
        error: one line, with `outcome`.
    """

    epoch: int
    top1: float = 0.0
    seconds: float = 0.0
    device: str = ""
    weights: bytes | None = field(default=None, repr=False)
    outcome: Outcome | None = None
    error: str = ""


@dataclass(frozen=True)
class Worker:
    """Everything but the job that a training needs.

    Attributes:
        proxy: the short training.
        images: data by (H, W) in pixels, on any device; moved to `device` once.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        threads: CPU threads of torch; None leaves them as they are.
        gpu_share: share of the device's memory that may be used, 0 to 1.
    """

    proxy: ProxyConfig
    images: Mapping[tuple[int, int], Images]
    device: str = "auto"
    threads: int | None = None
    gpu_share: float = 1.0

    def settle(self) -> Worker:
        """The same worker with its data on its device; once per process."""
        from dataclasses import replace

        import torch

        from vitnas.training.device import resolve_device

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        device = resolve_device(self.device)
        if device.type == "cuda" and self.gpu_share < 1.0:
            torch.cuda.set_per_process_memory_fraction(self.gpu_share, device)
        images = {size: images.to(device) for size, images in self.images.items()}
        return replace(self, images=images, device=str(device))

    def run(self, job: Job) -> Iterator[EpochMessage]:
        """Train `job` from the start. The caller stops it by asking for no more messages.

        The result is a function of the job alone, whatever ran here before.
        """
        import torch

        from vitnas.training.proxy import Diverged, ProxyTraining
        from vitnas.training.weights import weights_bytes

        started = time.monotonic()
        device = device_name(self.device)
        epoch = 0
        try:
            images = self.images[job.config.image_hw]
            training = ProxyTraining(job.config, self.proxy, images, job.seed, self.device)
            for result in training:
                epoch = result.epoch
                last = epoch == self.proxy.epochs
                weights = weights_bytes(training.model) if last else None
                seconds = time.monotonic() - started
                yield EpochMessage(epoch, result.top1, seconds, device, weights)
        except Diverged as error:
            yield self._ended(epoch, started, device, Outcome.DIVERGED, error)
        except torch.OutOfMemoryError as error:
            yield self._ended(epoch, started, device, Outcome.OOM, error)
        except Exception as error:  # a bug in the code: this trial's outcome, not the search's end
            yield self._ended(epoch, started, device, Outcome.FAILED, error)

    def _ended(
        self, epoch: int, started: float, device: str, outcome: Outcome, error: BaseException
    ) -> EpochMessage:
        line = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        seconds = time.monotonic() - started
        return EpochMessage(epoch, 0.0, seconds, device, outcome=outcome, error=line)


def device_name(device: str) -> str:
    """The card's name for a CUDA device, else `cpu`."""
    import torch

    resolved = torch.device(device)
    return torch.cuda.get_device_name(resolved) if resolved.type == "cuda" else resolved.type
