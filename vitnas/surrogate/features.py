"""A network as a row of numbers: its configuration, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from vitnas.config.costs import Priced
from vitnas.config.model import ModelConfig

Facts = Mapping[str, float]
_LEAST_SPREAD = 1e-9


def facts_of(config: ModelConfig, cost: Priced) -> dict[str, float]:
    """What is known of a network before training.

    Every field of the canonical configuration by its address: numbers as they are (log2 from 8
    on, so that widths compare by ratio), anything else as one indicator a value. Then the natural
    logarithms of FLOPs and parameters.
    """
    facts = dict(_leaves(config.canonical().model_dump(mode="json", exclude={"name"}), ""))
    facts |= {"log flops": log(max(1, cost.flops)), "log params": log(max(1, cost.num_params))}
    return facts


def _leaves(tree: Any, address: str) -> Iterator[tuple[str, float]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, f"{address}.{key}")
    elif isinstance(tree, list) and address.endswith(".groups"):
        yield f"{address} passes", float(len(tree))
        yield f"{address} mean log2", sum(map(log2, tree)) / len(tree)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _leaves(value, f"{address}[{index}]")
    elif tree is None or isinstance(tree, (bool, str)):
        yield f"{address} = {tree}", 1.0
    else:
        yield address, log2(tree) if tree >= 8 else float(tree)


class Encoder:
    """Facts as standardised rows.

    Args:
        sample: facts of networks as the space draws them: they say which columns there are, and
            their means and deviations. What is the same in all of them is left out.
    """

    def __init__(self, sample: Iterable[Facts]) -> None:
        rows = list(sample)
        names = sorted({name for row in rows for name in row})
        table = np.array([[row.get(name, 0.0) for name in names] for row in rows])
        spread = table.std(axis=0)
        kept = np.flatnonzero(spread > _LEAST_SPREAD)
        self.names = tuple(names[index] for index in kept)
        self._mean, self._spread = table.mean(axis=0)[kept], spread[kept]

    def encode(self, facts: Sequence[Facts]) -> npt.NDArray[np.float64]:
        """(n, columns); a column that a network has no fact for is 0 before standardising."""
        table = np.array([[row.get(name, 0.0) for name in self.names] for row in facts], ndmin=2)
        rows: npt.NDArray[np.float64] = (table - self._mean) / self._spread
        return rows
