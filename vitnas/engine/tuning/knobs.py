"""Which fields of a recipe are tuned, and over which ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from vitnas.config.data import Augment, DataConfig
from vitnas.config.training import ProxyConfig
from vitnas.config.trials import Trial

RANGES = {"lr": (5e-4, 0.1), "weight_decay": (0.005, 0.5)}
"""Searched on a logarithmic scale; widened where the space's own value lies outside."""
BATCHES = (16, 32, 64, 128, 256)
"""Those are tried that give an epoch eight steps or more, and the space's own."""
OPTIMIZERS = ("adamw", "muon")
"""They are tried, and the space's own."""
KNOBS = ("optimizer", "lr", "weight_decay", "batch_size", "augment")
_STEPS = 8
_NEAR, _FAR = (2.0, 0.5), (4.0, 0.25)  # of the own rate
_MUON = {"optimizer": "muon", "lr": 0.016}


@dataclass(frozen=True)
class Recipes:
    """The recipes that suit some images.

    Attributes:
        own: the space's.
        data: the images.
        num_images: in one epoch.
    """

    own: ProxyConfig
    data: DataConfig
    num_images: int

    def choices(self) -> Mapping[str, tuple[Any, ...]]:
        """What is chosen from a list, by field."""
        batches = {size for size in BATCHES if size * _STEPS <= self.num_images}
        return {
            "optimizer": tuple(dict.fromkeys((*OPTIMIZERS, self.own.optimizer))),
            "batch_size": tuple(sorted(batches | {self.own.batch_size})),
            "augment": tuple(dict.fromkeys((*_augmentations(self.data), self._augment))),
        }

    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """Ends of what is searched on a logarithmic scale, by field."""
        owned = {name: getattr(self.own, name) or low for name, (low, _) in RANGES.items()}
        return {
            name: (min(low, owned[name]), max(high, owned[name]))
            for name, (low, high) in RANGES.items()
        }

    def first(self) -> Iterator[dict[str, Any]]:
        """Answers of the recipes to begin with: the space's own, the same with twice the rate and
        with half of it, Muon at a rate that suits many networks, and the space's own with four
        times the rate and with a quarter of it; each once."""
        own = {name: getattr(self.own, name) for name in KNOBS} | {"augment": self._augment}
        near, far = ([{"lr": own["lr"] * by} for by in factors] for factors in (_NEAR, _FAR))
        begun = list[dict[str, Any]]()
        for change in ({}, *near, _MUON, *far):
            if (params := self._clipped(own | change)) not in begun:
                begun.append(params)
                yield params

    def suggest(self, trial: Trial) -> ProxyConfig:
        """A recipe from a trial's answers; rates have two digits."""
        found: dict[str, Any] = {
            name: trial.suggest_categorical(name, options)
            for name, options in self.choices().items()
        }
        for name, (low, high) in self.ranges().items():
            found[name] = float(f"{trial.suggest_float(name, low, high, log=True):.2g}")
        if found["augment"] == self._augment:
            del found["augment"]  # the space may spell it `auto`
        found["min_lr"] = min(self.own.min_lr, found["lr"])
        return self.own.model_copy(update=found)

    def _clipped(self, params: dict[str, Any]) -> dict[str, Any]:
        ends = self.ranges()
        return params | {
            name: min(max(params[name], low), high) for name, (low, high) in ends.items()
        }

    @property
    def _augment(self) -> Augment:
        return self.own.augment_for(self.data.name)


def _augmentations(data: DataConfig) -> tuple[str, ...]:
    """Those to try; not mirroring where vitnas's own data need no augmentation: digits change."""
    if data.is_ours and data.facts.augment == "none":
        return ("none", "shift")
    return tuple(name for name in get_args(Augment) if name != "auto")
