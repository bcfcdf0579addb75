"""What tuning found: as a table for people, as files for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitnas.config.files import dump_yaml
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line, one_lines
from vitnas.config.training import ProxyConfig
from vitnas.cost.closed_form import closed_form
from vitnas.engine.tuning.knobs import KNOBS
from vitnas.engine.tuning.tuner import Gain, Tried
from vitnas.errors import RunError
from vitnas.files import read_bytes, write_text
from vitnas.words import plural

BOOK_FILE, RESULT_FILE, RECIPE_FILE = "tune.jsonl", "tune.json", "recipe.yaml"
_MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes:
        own: the space's recipe.
        tried: all recipes, best first; those that were stopped last.
        gain: of the best one with another seed; None if none was better than the own.
        networks: what they were tried on, cheapest first.
        seconds: training time, over all workers.
        epochs: what other numbers of epochs gain on those of `proxy`; empty where that was not
            tried.
    """

    own: ProxyConfig
    tried: tuple[Tried, ...]
    gain: Gain | None
    networks: tuple[ModelConfig, ...]
    seconds: float
    epochs: Mapping[int, Gain] = field(default_factory=dict)

    @property
    def is_better(self) -> bool:
        """Whether the best recipe was better than the space's own with other seeds, too.

        By how much does not count: the one that did better twice is the better guess. To ask for
        certainty keeps the recipe that one begins with, and costs points (`benchmarks/tuning.py`).
        """
        return self.gain is not None and self.gain.points > 0

    @property
    def proxy(self) -> ProxyConfig:
        """The recipe to use."""
        return self.tried[0].proxy if self.is_better else self.own

    @property
    def line(self) -> str:
        """What was found, in one line."""
        best = _told(self.tried[0].proxy, self._varied)
        if self.gain is None:
            return f"no recipe of {len(self.tried)} is better than the space's own ({best})"
        points = f"{self.gain.points:+.1f} +- {self.gain.error:.1f} points of top-1"
        where = f"on {plural(len(self.networks), 'network')}"
        if self.is_better:
            doubt = "" if self.gain.is_sure else "; that may be chance, and is the better guess"
            return f"{best}: {points} {where}, above the space's own recipe{doubt}"
        return f"the space's own recipe is kept: the best other one ({best}) gives {points} {where}"

    @property
    def _varied(self) -> tuple[str, ...]:
        return tuple(
            name for name in KNOBS if len({getattr(t.proxy, name) for t in self.tried}) > 1
        )

    def text(self) -> str:
        """What was found, the networks, and a line for each recipe."""
        lines = [self.line, "", "points above the space's own recipe, by network:"]
        listed = zip(self.networks, one_lines(self.networks), strict=True)
        for index, (config, line) in enumerate(listed):
            lines.append(f"  {index}: {closed_form(config).flops:>12,} FLOPs  {line}")
        names = range(len(self.networks))
        lines += ["", "  mean " + "".join(f"{index:>8}" for index in names) + "  recipe"]
        for one in self.tried:
            gains = "".join(_points(one.gains.get(index)) for index in names)
            own = "" if one.number else "  (the space's own)"
            lines.append(f"{one.gain:+6.1f} {gains}  {_told(one.proxy, self._varied)}{own}")
        if self.epochs:
            lines += [
                "",
                f"points above {plural(self.proxy.epochs, 'epoch')} of the recipe to use:",
            ]
        for number, gain in self.epochs.items():
            cost = f"{number / self.proxy.epochs:.2g} times the cost"
            lines.append(
                f"{gain.points:+6.1f} +- {gain.error:.1f}  {plural(number, 'epoch')}, {cost}"
            )
        return "\n".join(lines)

    def stored(self) -> dict[str, Any]:
        """What a run that uses it keeps of it, as plain values."""
        return {
            "own": self.own.model_dump(mode="json"),
            "proxy": self.proxy.model_dump(mode="json"),
            "line": self.line,
        }

    def tree(self) -> dict[str, Any]:
        """As JSON."""
        gain = self.gain and {"points": self.gain.points, "error": self.gain.error}
        return {
            "is_better": self.is_better,
            "gain": gain,
            "proxy": self.proxy.model_dump(mode="json"),
            "own": self.own.model_dump(mode="json"),
            "seconds": round(self.seconds, 1),
            "epochs": {
                str(number): {"points": gain.points, "error": gain.error}
                for number, gain in self.epochs.items()
            },
            "networks": [
                {"key": c.key, "flops": closed_form(c).flops, "network": one_line(c)}
                for c in self.networks
            ],
            "tried": [
                {
                    "number": one.number,
                    "proxy": one.proxy.model_dump(mode="json"),
                    "mean": round(one.gain, 4),
                    "gains": {str(i): round(g, 4) for i, g in sorted(one.gains.items())},
                    "outcomes": {str(i): a.outcome.value for i, a in sorted(one.answers.items())},
                }
                for one in self.tried
            ],
        }

    def write(self, folder: Path, of: Mapping[str, str]) -> None:
        """Write `tune.json` and `recipe.yaml`.

        Args:
            folder: where to.
            of: see `check_result`.
        """
        write_text(folder / RESULT_FILE, json.dumps({**of, **self.tree()}, indent=2) + "\n")
        block = dump_yaml({"proxy": self.proxy.written()})
        write_text(folder / RECIPE_FILE, f"# {self.line}\n{block}")


def check_result(folder: Path, of: Mapping[str, str]) -> None:
    """Make sure that a result in `folder` is one that a new result may replace.

    Args:
        folder: of a tuning.
        of: name of the space, and what stands for the images, as `tune.json` has them.

    Raises:
        RunError: it is of another space or of other images.
    """
    try:
        tree = json.loads(read_bytes(folder / RESULT_FILE, _MOST_BYTES))
        held = {name: tree.get(name, value) for name, value in of.items()}  # older ones have none
    except (OSError, ValueError, RecursionError, AttributeError):
        return  # there is none, or none that could be used
    if held != of:
        what = f"of space {held['space']}" if held["space"] != of["space"] else "for other images"
        raise RunError(f"{folder}: holds the recipe {what}; give a new folder")


def ranked(tried: Sequence[Tried], best: Tried) -> tuple[Tried, ...]:
    """The best one, then the others by the number of their networks and their gain."""
    others = [one for one in tried if one is not best]
    return (best, *sorted(others, key=lambda one: (-len(one.gains), -one.gain, one.number)))


def told(one: Tried) -> str:
    """A recipe that has been tried, in one line."""
    count = len(one.gains)
    where = f"{one.gain:+.1f} points on {plural(count, 'network')}"
    return f"recipe {one.number}: {where}  {_told(one.proxy, KNOBS)}"


def _told(proxy: ProxyConfig, names: Sequence[str]) -> str:
    values = ((name, getattr(proxy, name)) for name in names)
    return ", ".join(
        f"{name} {v:g}" if isinstance(v, float) else f"{name} {v}" for name, v in values
    )


def _points(gain: float | None) -> str:
    return f"{'' if gain is None else format(gain, '+.1f'):>8}"
