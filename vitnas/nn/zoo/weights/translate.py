"""Maps a state dict of another code to ours, tensor by tensor. No tensor is ignored silently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitnas.config.design import ModelOrGraft
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError
from vitnas.nn.graft.whole import build_graft
from vitnas.nn.model import build_model
from vitnas.nn.numbers import kind_of
from vitnas.nn.weights import state_of
from vitnas.nn.zoo.weights.layout import Layout, Source

_COUNTS = "num_batches_tracked"
"""Batch norm's counter. Old checkpoints do not have it, and eval does not use it."""
_PROFILER = ("total_ops", "total_params")
"""Entries that a FLOP counter (thop) leaves in a model."""


class Misfit(NamedTuple):
    """Why a state dict does not fit a network. The names are that code's. Empty if it fits.

    Attributes:
        missing: tensors that the network needs and the state dict does not have.
        unexpected: tensors of the state dict that the network does not have.
        shapes: for each tensor of another shape or kind of numbers: what it is and should be.
        used: number of tensors that fit.
    """

    missing: list[str]
    unexpected: list[str]
    shapes: list[str]
    used: int

    @property
    def fits(self) -> bool:
        return not (self.missing or self.unexpected or self.shapes)

    @property
    def share(self) -> float:
        """Share of the tensors of both sides that fit, 0 to 1."""
        wrong = len(self.missing) + len(self.unexpected) + len(self.shapes)
        return self.used / max(1, self.used + wrong)

    def text(self, first: int = 5) -> str:
        """`12 missing (a, b, ...), 3 unexpected (c, d, e)`."""
        parts = [
            f"{len(names)} {kind} ({', '.join(map(_cut, names[:first]))}{', ...' * more})"
            for kind, names in (
                ("missing", self.missing),
                ("unexpected", self.unexpected),
                ("of another shape or kind", self.shapes),
            )
            if names
            for more in [len(names) > first]
        ]
        return ", ".join(parts)


class Translation(NamedTuple):
    """A state dict in our names.

    Attributes:
        state: a state dict that our network loads.
        dropped: tensor of the other code that is not used -> why.
        filled: our tensor that the other code does not have -> the value it gets.
    """

    state: dict[str, Tensor]
    dropped: dict[str, str]
    filled: dict[str, str]


def compare(layout: Layout, config: ModelOrGraft, state: Mapping[str, Tensor]) -> Misfit:
    """How `state` differs from a state dict of `config` in this layout. Only shapes are read."""
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    hollow = {
        name: torch.empty(value.shape, dtype=value.dtype, device="meta")
        for name, value in state.items()
    }
    left = dict.fromkeys(state)
    missing, wrong, used = [], [], 0
    for ours, wanted in expected(config).items():
        source = layout.source(ours, config, shapes)
        every = (*source.names, *source.behind, *source.beside)
        named = [name for name in every if name in state]
        for name in named:
            left.pop(name, None)
        absent = _absent(source, state)
        if absent and not ours.endswith(_COUNTS):
            missing += absent
        elif named and (problem := _problem(source, hollow, wanted)):
            wrong.append(problem)
        else:
            used += len(named)
    unexpected = [name for name in left if not _unread(layout, name)]
    return Misfit(missing, unexpected, wrong, used)


def translate(layout: Layout, config: ModelOrGraft, state: Mapping[str, Tensor]) -> Translation:
    """`state` for our network of `config`. `compare` must say that it fits.

    Raises:
        ConfigError: a tensor that is saved under several names has different values there.
    """
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    found, filled = {}, {}
    for ours, wanted in expected(config).items():
        source = layout.source(ours, config, shapes)
        if _absent(source, state):
            found[ours] = torch.zeros(wanted.shape, dtype=wanted.dtype)
            filled[ours] = "zero: it is not in the checkpoint and has no effect on scores"
            continue
        _check_shared(source, state)
        found[ours] = _taken(source, state).reshape(wanted.shape).to(wanted.dtype).contiguous()
    dropped = {name: why for name in state if (why := _unread(layout, name))}
    return Translation(found, dropped, filled)


@lru_cache(maxsize=64)
def expected(config: ModelOrGraft) -> Mapping[str, Tensor]:
    """The state dict of our network, with tensors without memory. Shared tensors are in it once."""
    with torch.device("meta"):
        model: nn.Module = (
            build_graft(config) if isinstance(config, GraftFile) else build_model(config)
        )
    return state_of(model)


def _unread(layout: Layout, name: str) -> str:
    """Why a tensor of that code is not read; empty for those that must be."""
    if name.split(".")[-1] in _PROFILER:
        return "a FLOP counter's entry, no weight"
    constant = layout.constants and re.search(layout.constants, name)
    return "a constant, which the network computes itself" if constant else ""


def _absent(source: Source, state: Mapping[str, Tensor]) -> list[str]:
    """The names that are missing. If a tensor has several names, one of them is enough."""
    first = () if any(name in state for name in source.names) else source.names[:1]
    rest = (*source.behind, *source.beside)
    return [*first, *(name for name in rest if name not in state)]


def _taken(source: Source, state: Mapping[str, Tensor]) -> Tensor:
    value = next(state[name] for name in source.names if name in state)
    if source.behind:
        value = torch.cat([value, *(state[name] for name in source.behind)])
    return source.order(value, *(state[name] for name in source.beside)) if source.order else value


def _problem(source: Source, hollow: Mapping[str, Tensor], wanted: Tensor) -> str | None:
    """What is wrong with the shape of a tensor or the kind of its numbers, or None."""
    name = next(name for name in source.names if name in hollow)
    others = {hollow[other].shape for other in source.names if other in hollow}
    try:
        value = _taken(source, hollow)
        if len(others) == 1 and _plain(value.shape) == _plain(wanted.shape):
            if kind_of(value) == kind_of(wanted):
                return None
            return f"{name} holds {kind_of(value)} for {kind_of(wanted)}"
        found = tuple(hollow[name].shape if source.order else value.shape)
    except (RuntimeError, IndexError, TypeError):
        found = tuple(hollow[name].shape)
    return f"{name} is {list(found)} for {list(wanted.shape)}"


def _plain(shape: Iterable[int]) -> list[int]:
    """A shape without the ones at its end: (8, 4, 1, 1) and (8, 4) are one."""
    sides = list(shape)
    while len(sides) > 1 and sides[-1] == 1:
        sides.pop()
    return sides


def _cut(name: str) -> str:
    return name if len(name) <= 120 else name[:117] + "..."


def _check_shared(source: Source, state: Mapping[str, Tensor]) -> None:
    first, *others = [name for name in source.names if name in state]
    for other in others:
        if not torch.equal(state[first], state[other]):
            raise ConfigError(f"{first} and {other} must be equal: this code shares one tensor")
