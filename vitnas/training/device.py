"""The device of a training, its threads and its own randomness."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from vitnas.cores import threads_beside
from vitnas.errors import DeviceError


def resolve_device(name: str | torch.device = "auto") -> torch.device:
    """`auto` (CUDA where there is one), `cpu`, `cuda` or `cuda:1` -> the device.

    Raises:
        DeviceError: no such device on this machine, or not a device's name.
    """
    text = str(name)
    if text == "auto":
        text = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(text)
    except RuntimeError:
        raise DeviceError(f"'{text}' is not a device: take auto, cpu, cuda or cuda:1") from None
    if device.type not in ("cpu", "cuda"):
        raise DeviceError(f"'{text}' is not supported: take auto, cpu, cuda or cuda:1")
    if device.type == "cuda":
        check_cuda(f"'{text}' was asked for and")
        number = torch.cuda.device_count()
        if (device.index or 0) >= number:
            raise DeviceError(f"'{text}' was asked for and this machine has {number} CUDA devices")
    return device


def check_cuda(asked: str, instead: str = "") -> None:
    """Make sure that torch can use a CUDA device here.

    Args:
        asked: who wants one, as the start of a line.
        instead: what to do without, as its end.

    Raises:
        DeviceError: it cannot, and why: no driver, one that is too old, a torch without CUDA.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch tells the reason here, too, at length
        if torch.cuda.is_available():
            return
    reason = ""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        reason = f" that torch can use: {str(error).splitlines()[0].split('. ')[0]}"
    raise DeviceError(f"{asked} this machine has no CUDA device{reason}{instead}")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device had no room: torch names only what its own allocator lacked."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _FULL)


_FULL = ("CUDA error: out of memory", "_STATUS_ALLOC_FAILED")
"""What the driver, cuBLAS and cuDNN say where other processes fill the card."""


def end_if_broken() -> None:
    """Free what this process holds of CUDA's memory and does not use; end it where that fails.

    After a kernel has failed no CUDA call of a process works. Whoever started a worker starts
    another one then.
    """
    if not torch.cuda.is_initialized():
        return
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except RuntimeError:
        os._exit(1)  # leaving as usual would call CUDA again


@contextmanager
def own_threads(device: torch.device, threads: int | None = None) -> Iterator[None]:
    """Inside, torch has so many CPU threads; None: those of a training of a search on `device`."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or threads_beside(device.type == "cuda"))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, torch's global generators start from `seed`; afterwards they are as before.

    Covers the CPU's generator and that of `device`; other CUDA devices are left alone.
    """
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)
        for one in cuda:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def own_all_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """As `own_randomness`, for Python's and NumPy's global generators too.

    timm's augmentations draw from all three.
    """
    states = random.getstate(), np.random.get_state()
    try:
        with own_randomness(seed, device):
            random.seed(seed)
            np.random.seed(seed)
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 on CUDA, nothing elsewhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
