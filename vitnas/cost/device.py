"""What a network costs on a device: how long a forward pass takes, and how much memory it needs.

Each cost is a function of a network and a batch of images; `vitnas.config.costs` names them.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pkgutil import resolve_name

import torch
from torch import Tensor, nn

from vitnas.config.costs import CostKind
from vitnas.nn.modes import evaluating

Network = Callable[[Tensor], object]
"""What is timed: images in, anything out."""
_WARM_UPS = 3
_LEAST_S, _LEAST_PASSES = 0.3, 7


def measure(
    model: nn.Module,
    input_shape: Sequence[int],
    device: str | torch.device,
    kinds: Iterable[CostKind],
) -> dict[str, float]:
    """What `model` costs in eval mode without gradients, by the names of `kinds`.

    Amounts are comparable only on one device on which nothing else runs. The caller ensures that,
    and sets threads and autocast.

    Args:
        model: on `device`; its training mode is left as it was.
        input_shape: `(channels, height, width)` of an image.
        device: where it runs.
        kinds: what is measured, one after the other.

    Raises:
        torch.OutOfMemoryError: a pass does not fit.
    """
    with evaluating(model):
        return {kind.name: _amount(kind, model, input_shape, device) for kind in kinds}


def _amount(
    kind: CostKind, model: nn.Module, input_shape: Sequence[int], device: str | torch.device
) -> float:
    """One cost, by the function that its record names."""
    function = resolve_name(str(kind.measured_by))
    images = torch.zeros(kind.batch, *input_shape, device=device)
    return round(float(function(model, images)), 6)


def latency_ms(model: Network, images: Tensor) -> float:
    """Milliseconds of a forward pass, the median of many.

    Timed by `torch.utils.benchmark`, which waits for CUDA: three passes to warm up, then passes for
    at least 0.3 s and at least seven of them.
    """
    return 1e3 * _median_seconds(model, images)


def throughput(model: Network, images: Tensor) -> float:
    """Images a second in forward passes of this batch, timed as `latency_ms` is."""
    return len(images) / _median_seconds(model, images)


def peak_memory_mb(model: nn.Module, images: Tensor) -> float:
    """Peak memory of a forward pass in 10^6 bytes: parameters, buffers, the images and all that the
    pass allocates. Other tensors on the device are left out.

    On CUDA the allocator reports it (`torch.cuda.max_memory_allocated`), in blocks of 512 bytes. On
    the CPU it is the peak of the allocations that torch's profiler sees in one pass. Memory that a
    library does not allocate through torch is not seen.
    """
    return (_held(model, images) + _allocated(model, images)) / 1e6


def _median_seconds(model: Network, images: Tensor) -> float:
    """The median time of a pass."""
    logging.getLogger("torch.utils.cpp_extension").setLevel(
        logging.ERROR
    )  # it warns where CUDA is missing
    from torch.utils import benchmark

    for _ in range(_WARM_UPS):
        _wait(images)
        started = time.perf_counter()
        model(images)
        _wait(images)
        once = time.perf_counter() - started
    timer = benchmark.Timer(
        "model(images)",
        globals={"model": model, "images": images},
        num_threads=torch.get_num_threads(),
    )
    measured = timer.blocked_autorange(min_run_time=max(_LEAST_S, _LEAST_PASSES * once))
    return float(measured.median)


def _wait(images: Tensor) -> None:
    if images.is_cuda:
        torch.cuda.synchronize(images.device)


def _held(model: nn.Module, images: Tensor) -> int:
    """Bytes that are in use before a pass; shared parameters count once."""
    tensors = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers(), images)}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _allocated(model: nn.Module, images: Tensor) -> int:
    """The most bytes that a pass has allocated at any moment."""
    if images.is_cuda:
        model(images)  # in a process's first pass libraries take a workspace, which they keep
        _wait(images)
        torch.cuda.reset_peak_memory_stats(images.device)
        before = torch.cuda.memory_allocated(images.device)
        model(images)
        _wait(images)
        return torch.cuda.max_memory_allocated(images.device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes to the terminal
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        model(images)
    events = [event for event in profile.kineto_results.events() if event.name() == "[memory]"]
    changes = (event.nbytes() for event in sorted(events, key=lambda event: event.start_ns()))
    return max(accumulate(changes), default=0)
