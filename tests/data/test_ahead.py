"""Batches that are made ready ahead: all of them, in their order, and no more than said."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from vitnas.data.ahead import made_ahead


def test_all_come_in_their_order() -> None:
    assert list(made_ahead(lambda number: number**2, range(50))) == [n**2 for n in range(50)]
    assert list(made_ahead(str, [])) == []
    assert list(made_ahead(str, [7])) == ["7"]


def test_the_next_is_made_while_one_is_used_and_no_more() -> None:
    made = [threading.Event() for _ in range(6)]
    asked: list[int] = []

    def each() -> Iterator[int]:
        for number in range(6):
            asked.append(number)
            yield number

    def make(number: int) -> int:
        made[number].set()
        return number

    for number in made_ahead(make, each()):
        if number < 5:
            assert made[number + 1].wait(10), "nobody makes the next one"
        assert asked == list(range(min(6, number + 2)))


def test_they_are_made_by_another_thread_and_asked_for_by_this_one() -> None:
    here, makers, askers = threading.get_ident(), set[int](), set[int]()

    def each() -> Iterator[int]:
        for number in range(3):
            askers.add(threading.get_ident())
            yield number

    list(made_ahead(lambda _: makers.add(threading.get_ident()), each()))
    assert askers == {here}
    assert here not in makers


def test_an_error_comes_when_its_turn_comes_and_the_thread_ends() -> None:
    before = threading.active_count()
    found: list[float] = []
    with pytest.raises(ZeroDivisionError):
        found.extend(made_ahead(lambda number: 1 / number, [4, 2, 0, 1]))
    assert found == [0.25, 0.5]
    assert threading.active_count() == before


def test_who_stops_early_leaves_no_thread() -> None:
    before = threading.active_count()
    each = made_ahead(str, range(10**9))
    assert next(each) == "0"
    each.close()
    assert threading.active_count() == before


def test_what_waits_is_bounded() -> None:
    done, lock = 0, threading.Lock()

    def count(number: int) -> int:
        nonlocal done
        with lock:
            done += 1
        return number

    answers = made_ahead(count, range(1000), threads=2, most=5)
    assert next(answers) == 0
    time.sleep(0.05)
    assert done <= 6
    assert list(answers) == list(range(1, 1000))
