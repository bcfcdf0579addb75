"""Work that is captured as a CUDA graph gives what the calls give."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor
from torch.nn.functional import dropout

from vitnas.training.replayed import Replayed

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def inputs(number: int) -> list[Tensor]:
    """Of two shapes in turn."""
    draw = torch.Generator("cuda").manual_seed(0)
    sizes = [(3 + i % 2, 5) for i in range(number)]
    return [torch.randn(size, generator=draw, device="cuda") for size in sizes]


def test_each_call_has_the_result_of_its_inputs() -> None:
    replayed, total = Replayed(), torch.zeros((), device="cuda")

    def work(x: Tensor) -> Tensor:
        total.add_(x.sum())
        return x.square().sum()

    for x in inputs(12):
        before = total.clone()
        assert torch.equal(replayed(work, x), x.square().sum())
        assert torch.equal(total, before + x.sum())


def test_draws_are_those_of_the_calls_and_come_from_the_seed() -> None:
    def work(x: Tensor) -> Tensor:
        return dropout(x, 0.5)

    def drawn(call: Replayed | None) -> list[Tensor]:
        found = []
        for number, x in enumerate(inputs(12)):
            if number % 4 == 0:
                torch.cuda.manual_seed(number)
            found.append((work(x) if call is None else call(work, x)).clone())
        return found

    with torch.random.fork_rng(devices=[0]):
        assert all(map(torch.equal, drawn(Replayed()), drawn(None)))


def test_what_cannot_be_captured_is_called_and_said_once() -> None:
    replayed = Replayed()

    def work(x: Tensor) -> Tensor:
        return dropout(x, 0.5) * float(x.sum())  # reads a number

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for x in inputs(8):
            torch.cuda.manual_seed(1)
            found = replayed(work, x)
            torch.cuda.manual_seed(1)
            assert torch.equal(found, work(x))
    (warning,) = told
    assert str(warning.message).startswith("steps are not captured as a CUDA graph: ")
    assert "\n" not in str(warning.message)


def test_a_graph_s_memory_is_free_when_nothing_holds_it() -> None:
    reserved = []
    for _ in range(4):
        replayed = Replayed()
        for _ in range(3):
            replayed(lambda x: (x @ x).exp().sum(), torch.ones(2048, 2048, device="cuda"))
        del replayed
        torch.cuda.empty_cache()
        reserved.append(torch.cuda.memory_reserved())
    assert max(reserved[1:]) <= reserved[0], "the first one leaves cuBLAS's workspace"
