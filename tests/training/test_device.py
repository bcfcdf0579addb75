"""Devices by name, and randomness that leaves no trace."""

from __future__ import annotations

import os

import pytest
import torch

from vitnas.errors import DeviceError
from vitnas.training.device import (
    end_if_broken,
    is_out_of_memory,
    own_randomness,
    own_threads,
    resolve_device,
)


def test_auto_is_a_device_that_is_there() -> None:
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", "mps", "meta"])
def test_what_is_no_device_of_ours_is_refused(name: str) -> None:
    with pytest.raises(DeviceError, match="take auto, cpu, cuda or cuda:1"):
        resolve_device(name)


def test_cuda_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="no CUDA device") as caught:
        resolve_device("cuda:1")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            RuntimeError(
                "The NVIDIA driver on your system is too old (found version 11040). Please update "
                "your GPU driver by downloading and installing a new version from the URL: ..."
            ),
            "The NVIDIA driver on your system is too old (found version 11040)",
        ),
        (AssertionError("Torch not compiled with CUDA enabled"), "Torch not compiled with CUDA"),
    ],
)
def test_why_torch_can_use_no_cuda_device_is_told(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    def init() -> None:
        raise error

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    with pytest.raises(DeviceError) as caught:
        resolve_device("cuda")
    start = "'cuda' was asked for and this machine has no CUDA device that torch can use: "
    assert str(caught.value).startswith(start + reason)
    assert "Please" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "is_full"),
    [
        ("CUDA error: out of memory", True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True),
        ("CUDA error: an illegal memory access was encountered", False),
    ],
)
def test_a_card_that_others_fill_is_told_from_other_errors(text: str, is_full: bool) -> None:
    assert is_out_of_memory(RuntimeError(text)) == is_full
    assert is_out_of_memory(torch.OutOfMemoryError(text))
    assert not is_out_of_memory(ValueError(text))


def test_a_second_cuda_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert resolve_device("cuda") == torch.device("cuda")
    with pytest.raises(DeviceError, match="1 CUDA device"):
        resolve_device("cuda:1")


def test_own_randomness_is_repeatable_and_leaves_the_state() -> None:
    before = torch.get_rng_state()
    draws = []
    for _ in range(2):
        with own_randomness(7, torch.device("cpu")):
            draws.append(torch.rand(4))
        torch.rand(3)  # what happens in between does not matter
    assert torch.equal(*draws)
    torch.set_rng_state(before)

    def fails() -> None:
        with own_randomness(7, torch.device("cpu")):
            torch.rand(1)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert torch.equal(before, torch.get_rng_state())


def test_a_training_has_the_threads_of_a_search_and_gives_them_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vitnas.cores.cores", lambda: 2)
    before = torch.get_num_threads()
    with own_threads(torch.device("cpu")):
        assert torch.get_num_threads() == 1
    with own_threads(torch.device("cuda")):
        assert torch.get_num_threads() == 2
    with own_threads(torch.device("cpu"), 3):
        assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == before


def test_a_process_whose_device_is_broken_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """All its later trials would fail, one after the other and within seconds."""

    def broken() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(torch.cuda, "synchronize", broken)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    end_if_broken()
    assert not ended
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    end_if_broken()
    assert ended == [1]
