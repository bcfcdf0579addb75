"""Make the next batch ready while the last one is used."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def one_ahead(make: Callable[[Given], Made], each: Iterable[Given]) -> Generator[Made, None, None]:
    """What `make` gives for each, in their order; a thread makes the next while one is used.

    Beside the one that is used, two are there at most: one is ready and one is made. `each` is
    asked by the caller's thread. An error of `make` comes when its turn comes.
    """
    with ThreadPoolExecutor(1, "vitnas-ahead") as thread:
        coming: Future[Made] | None = None
        for given in each:
            following = thread.submit(make, given)
            if coming is not None:
                yield coming.result()
            coming = following
        if coming is not None:
            yield coming.result()
