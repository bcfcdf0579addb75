"""What is said of a field: when it matters, which values mean the same, and which fit.

`matters` has a rule for each field. A rule also works for a network that is known in part (see
`draft`). A field that is not settled is absent there, and a rule that reads it raises NotSettled:
the answer is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from vitnas.config.network import Network
from vitnas.config.stage import StageConfig

Holder = TypeVar("Holder", Network, StageConfig)


def _always(holder: Any) -> bool:
    return True


def itself(holder: Any, value: Any, network: Network) -> Any:
    return value


def _fits(holder: Any, value: Any, network: Network) -> None:
    """Every value fits."""


@dataclass(frozen=True)
class FieldRule(Generic[Holder]):
    """What a field means in its context.

    Attributes:
        when: when it matters, in words.
        matters: whether another value makes another network.
        meaning: one value for all values that mean the same; a number means itself.
        own: texts that mean themselves, too.
        misfit: why a value cannot be here, or None; values that cannot are not on offer.
        is_limit: whether the numbers that fit are those up to a limit.
        is_least: whether the numbers that fit are those from a limit on.
        item: the rule of the value at an index, if the field is a list with rules of its own.
    """

    when: str = "always"
    matters: Callable[[Holder], bool] = _always
    meaning: Callable[[Holder, Any, Network], Any] = itself
    own: Container[str] = ()
    misfit: Callable[[Holder, Any, Network], str | None] = _fits
    is_limit: bool = False
    is_least: bool = False
    item: Callable[[int], FieldRule[Holder]] | None = None

    @property
    def may_misfit(self) -> bool:
        """Whether some values may not fit."""
        return self.misfit is not _fits

    def may_repeat(self, values: Sequence[Any]) -> bool:
        """Whether some of these values, all different, may mean the same."""
        return self.meaning is not itself and not all(map(self._is_own, values))

    def _is_own(self, value: Any) -> bool:
        return value in self.own if isinstance(value, str) else isinstance(value, (int, float))
