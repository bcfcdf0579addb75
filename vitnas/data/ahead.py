"""Make the next things ready while the last ones are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def made_ahead(
    make: Callable[[Given], Made], each: Iterable[Given], threads: int = 1, most: int = 1
) -> Generator[Made, None, None]:
    """What `make` gives for each, in their order; threads make the next while one is used.

    `each` is asked by the caller's thread. An error of `make` comes when its turn comes.

    Args:
        make: called with each.
        each: what is given.
        threads: that call it.
        most: how many may be ready or coming, beside one that is made when it is asked for.
    """
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads, "vitnas-ahead") as pool:
        for given in each:
            waiting.append(pool.submit(make, given))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
