"""Which parts of a network int8 costs accuracy, measured on training images that score nothing.

The measure is the share of images whose likeliest class is another one than the float network's. It
needs no labels, and it is finer than a difference of top-1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vitnas.deploy.graph import Operator
from vitnas.exported.quantized import Quantizer
from vitnas.exported.runtime import run_with
from vitnas.report.text import listed

ENOUGH = 1.0
"""Percent of images whose answer may change before further parts are left in float."""
_MOST_PARTS = 3
_BATCH = 64
_Marks = npt.NDArray[np.bool_]


@dataclass
class Blame:
    """int8 of some operators of a network, against its float form.

    Args:
        quantizer: of the network.
        operators: of its float file.
        images: normalised images (n, C, H, W) that neither calibrate nor score.
        threads: of the CPU.
    """

    quantizer: Quantizer
    operators: Sequence[Operator]
    images: Tensor
    threads: int = 1

    def __post_init__(self) -> None:
        self._expected = self._classes(self.quantizer.model)

    def of_mixers(self) -> dict[str, _Marks]:
        """By token mixer: which images (n,) change their answer with its operators alone in int8.

        A mixer without an operator that can be quantized is left out.
        """
        mixers = dict.fromkeys(one.mixer for one in self.operators if one.mixer)
        found = {}
        for mixer in mixers:
            names = [one.name for one in self.operators if one.mixer == mixer]
            found[str(mixer)] = self._changed(only=names)
        return found

    def remedy(self) -> tuple[tuple[str, ...], dict[str, float]]:
        """Parts that are to stay in float, and what each of them alone brings.

        First each part alone stays in float. Then parts are added, the one that helped most first,
        until at most `ENOUGH` percent of the answers change. A part that changes no fewer of them
        is not added.

        Returns:
            The parts, none where no part helps; and by part the percent of images whose answer
            changes when it alone stays in float, with `""` for no part.
        """
        parts = list(dict.fromkeys(one.part for one in self.operators))
        gains = {"": self._percent(())}
        gains |= {part: self._percent((part,)) for part in parts}
        order = sorted(parts, key=lambda part: gains[part])
        chosen: tuple[str, ...] = ()
        least = gains[""]
        for part in order[:_MOST_PARTS]:
            if chosen and least <= ENOUGH:
                break
            both = self._percent((*chosen, part)) if chosen else gains[part]
            if both < least:
                chosen, least = (*chosen, part), both
        return chosen, gains

    def names_of(self, parts: Collection[str]) -> list[str]:
        """The operators of these parts."""
        return [one.name for one in self.operators if one.part in parts]

    def _percent(self, parts: Collection[str]) -> float:
        return percent(self._changed(without=self.names_of(parts)))

    def _changed(self, only: Iterable[str] = (), without: Iterable[str] = ()) -> _Marks:
        path = self.quantizer.folder / "tried.onnx"
        self.quantizer.write(path, only=only, without=without)
        found: _Marks = (self._classes(path) != self._expected).numpy()
        return found

    def _classes(self, path: Path) -> Tensor:
        ask = run_with(path, self.threads)
        return torch.cat([ask(batch).argmax(1) for batch in self.images.split(_BATCH)])


def percent(marks: _Marks) -> float:
    """How many of them are true."""
    return 100.0 * float(marks.mean()) if len(marks) else 0.0


def verdict(changed: Mapping[str, Sequence[_Marks]]) -> str:
    """A sentence on which token mixers lose more with int8; only what the images tell.

    Two mixers differ if a 95 % interval of the difference of their shares leaves out 0. The
    interval is a bootstrap's over images: all networks see the same ones.

    Args:
        changed: by token mixer, for each network that has it, which images changed their answer.
    """
    shares = {mixer: np.mean(marks, axis=0) for mixer, marks in changed.items() if len(marks)}
    if not shares:
        return ""
    means = {mixer: 100 * float(share.mean()) for mixer, share in shares.items()}
    worst, *others = sorted(means, key=lambda mixer: -means[mixer])
    figures = ", ".join(f"{mixer} {means[mixer]:.2f} %" for mixer in (worst, *others))
    if not others:
        return f"{worst} alone in int8 changes {means[worst]:.2f} % of the answers."
    more = [mixer for mixer in others if _differ(shares[worst], shares[mixer])]
    if not more:
        return f"No token mixer loses measurably more than another one: {figures}."
    return f"{worst} loses more with int8 than {listed(more)}: {figures} of the answers change."


def _differ(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bool:
    """Whether the mean of `one` is higher, images drawn anew a thousand times."""
    draw = np.random.default_rng(0)
    at = draw.integers(0, len(one), (1000, len(one)))
    return bool(np.quantile((one - other)[at].mean(axis=1), 0.025) > 0)
