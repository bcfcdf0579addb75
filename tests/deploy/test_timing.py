"""Turns of runtimes; how long a pass takes is not tested."""

from __future__ import annotations

from itertools import groupby

from vitnas.deploy.timing import interleaved


def test_the_runtimes_take_turns() -> None:
    ran: list[str] = []
    found = interleaved({name: lambda name=name: ran.append(name) for name in "ab"}, rounds=4)  # type: ignore[misc]
    assert set(found) == {"a", "b"}
    assert all(ms >= 0 for ms in found.values())
    turns = [name for name, _ in groupby(ran)]
    assert turns == ["a", "b", "a", "b", "a", "b", "a"], "each round starts with another one"
