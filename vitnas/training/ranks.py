"""The processes that train one network together, each with its own device."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from vitnas.cores import Launch
from vitnas.errors import DeviceError, LostError, RunError
from vitnas.training.device import resolve_device
from vitnas.training.objective import Batch

Loss = Callable[[Batch], Tensor]
_HARMLESS = ("`broadcast_buffers` is deprecated", "Grad strides do not match bucket view strides")


@dataclass(frozen=True)
class Ranks:
    """What one of these processes has to know of the others.

    Each takes its share of every step's images. Gradients are averaged by PyTorch's
    DistributedDataParallel, so after every step all have the same weights. What is drawn for the
    images of a share is drawn by its own process. BatchNorm normalises by the share alone, and what
    each process has measured after an epoch is averaged.

    Attributes:
        rank: this process's number, from 0.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this one writes and speaks for all."""
        return self.rank == 0

    def own(self, purpose: str) -> str:
        """What a seed is for, where each process has its own."""
        return f"{purpose} of {self.rank}" if self.rank else purpose

    def share(self, numbers: Tensor) -> Tensor:
        """This process's part of a step's (n,) numbers of images; parts differ by one at most."""
        return numbers.tensor_split(self.size)[self.rank]

    def weight(self, share: int, whole: int) -> float:
        """What the mean over a `share` of a step's images counts, as gradients are averaged."""
        return share * self.size / whole

    def sum(self, values: Tensor) -> Tensor:
        """Over all processes, which all ask for it."""
        if self.size > 1:
            values = values.clone()
            dist.all_reduce(values)
        return values

    def together(self, loss: Loss, model: nn.Module) -> Loss:
        """`loss` of `model`, whose backward pass averages the gradients over the processes."""
        if self.size == 1:
            return loss
        from torch.nn.parallel import DistributedDataParallel

        wrapped: Loss = DistributedDataParallel(_Wrapped(loss, model), broadcast_buffers=False)
        return wrapped

    def adding(self, loss: Loss, is_last: bool) -> AbstractContextManager[None]:
        """What all passes of a step but the last run in: their gradients wait for it."""
        if self.size == 1 or is_last:
            return nullcontext()
        waiting: AbstractContextManager[None] = loss.no_sync()  # type: ignore[attr-defined]
        return waiting

    def level(self, model: nn.Module) -> None:
        """Average the statistics of BatchNorm."""
        if self.size > 1:
            from timm.utils.distributed import distribute_bn

            distribute_bn(model, self.size, reduce=True)

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            dist.barrier()

    def agree(self, value: int) -> bool:
        """Whether all processes say the same number."""
        if self.size == 1:
            return True
        said: list[int] = [0] * self.size
        dist.all_gather_object(said, value)
        return len(set(said)) == 1


ALONE = Ranks()


class _Wrapped(nn.Module):
    """A loss as a module, so that DistributedDataParallel sees all passes that it makes."""

    def __init__(self, loss: Loss, model: nn.Module) -> None:
        super().__init__()
        self.model, self._loss = model, loss

    def forward(self, batch: Batch) -> Tensor:
        return self._loss(batch)


def device_of(name: str | torch.device, here: Launch) -> torch.device:
    """As `resolve_device`; of several processes on a machine each has a CUDA device of its own.

    Raises:
        DeviceError: there are fewer devices than processes, or one device is asked for.
    """
    device = resolve_device(name)
    if here.size == 1 or device.type == "cpu":
        return device
    if ":" in str(device):
        rule = f"'{name}' is one device for {here.size} processes: take cuda, or auto"
        raise DeviceError(rule)
    return resolve_device(f"cuda:{here.local}")


@contextmanager
def joined(here: Launch, device: torch.device) -> Iterator[Ranks]:
    """Inside, this process works with the others: by NCCL on CUDA, by Gloo on the CPU.

    A process group that is there already, as in a worker of Ray Train, is taken and left.

    Raises:
        LostError: another process has ended.
        RunError: the network cannot be trained so.
    """
    if here.size == 1:
        yield ALONE
        return
    is_ours = not dist.is_initialized()
    try:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        if is_ours:
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        with warnings.catch_warnings():
            for beginning in _HARMLESS:
                warnings.filterwarnings("ignore", beginning)
            yield Ranks(here.rank, here.size)
    except RuntimeError as error:
        plain = _plain(error)
        if plain is None:
            raise
        raise plain from None
    finally:
        if is_ours and dist.is_initialized():
            dist.destroy_process_group()


def _plain(error: RuntimeError) -> RunError | None:
    """An error of the exchange in one line; None for any other.

    Gloo's errors have no class of their own.
    """
    if isinstance(error, dist.DistError) or "gloo" in str(error):
        rule = "another process of this training has ended; the same command resumes it"
        return LostError(rule)
    if "finished reduction in the prior iteration" in str(error):
        rule = "a parameter of this network is used in no step, so it trains in one process only"
        return RunError(rule)
    return None
