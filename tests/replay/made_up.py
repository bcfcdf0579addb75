"""A made-up table: networks of a small space with curves that rise with FLOPs."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.conftest import make_space
from vitnas.engine.samplers.pool import SpacePool
from vitnas.records import Outcome
from vitnas.replay.table import Recorded, RecordedTraining, Table


def made_up_table(count: int = 40) -> Table:
    """Networks of the tiny space with curves that rise with FLOPs, one of them diverging."""
    space = make_space(proxy={"epochs": 6, "batch_size": 64})
    proposals = sorted(SpacePool(space, 0, first=400).sample(), key=lambda p: p.key)[:count]
    networks = []
    for index, proposal in enumerate(proposals):
        end = 60 + 30 * (1 - 2e5 / (proposal.flops + 2e5)) + index % 7
        curve = tuple(round(end - 10 / epoch, 4) for epoch in range(1, 7))
        config = space.suggest(_Answers(proposal.params))
        training = RecordedTraining(curve, seconds=3.0 + index % 3)
        networks.append(Recorded(config, proposal, (training,)))
    (whole,) = networks[5].trainings
    lost = replace(whole, curve=whole.curve[:1], outcome=Outcome.DIVERGED)
    networks[5] = replace(networks[5], trainings=(lost,))
    return Table(space, tuple(networks), {"command": "made up"})


def repeated(table: Table, changes: tuple[float, ...]) -> Table:
    """With further trainings of each complete network, whose scores differ by so many points."""

    def again(network: Recorded) -> Recorded:
        if not network.scores:
            return network
        (first,) = network.trainings
        others = [replace(first, curve=(*first.curve[:-1], first.curve[-1] + c)) for c in changes]
        return replace(network, trainings=(first, *others))

    return replace(table, networks=tuple(map(again, table.networks)))


def shifted(table: Table, points: float) -> Table:
    """With so many points more for each complete network."""

    def better(network: Recorded) -> Recorded:
        return replace(network, trainings=network.trainings[1:]) if network.scores else network

    return replace(table, networks=tuple(map(better, repeated(table, (points,)).networks)))


class _Answers:
    def __init__(self, params: object) -> None:
        self._params = params

    def suggest_categorical(self, name: str, choices: object) -> object:
        return self._params[name]  # type: ignore[index]

    suggest_int = suggest_float = lambda self, name, low, high, **more: self._params[name]


TABLE = made_up_table()
