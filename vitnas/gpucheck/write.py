"""A check's file, and the page with the table of all cards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitnas.files import write_text
from vitnas.gpucheck.check import GOALS, Goal, GpuCheck, checks_in, is_met

_HEAD = """# On a GPU

`vitnas gpu-check` measures the figures of this page on the machine's CUDA device, each in a process
of its own, in less than ten minutes, and prints them. In a checkout it also runs the tests that
need a card. `--out docs` there also writes `gpu/<card>.json` beside this page, and this page.
Without `--out` nothing is written. `--dry` runs the same code on the CPU, with little of
everything, and writes nothing.

The proxy is a network of 47 MFLOPs in batches of 512, trained by a process that has trained another
network before: its first epoch also loads the kernels that its own sizes take. The small network
has 14 MFLOPs and batches of 128. Four trainings of it share the card by MPS, or take turns where
that is not there.

"""
_NOTHING = "Not run on a GPU yet.\n"
_BESIDE = {
    "captured": {"ratio_small": "the same with the small network"},
    "proxy": {"images_per_second": "its images a second after the first epoch"},
    "digits": {"median_trial": "a training of it, s"},
    "shared": {"ratio_in_turns": "the same in turns"},
}
"""What no target is for, by figure: its name and text."""


def write(checked: GpuCheck, folder: Path) -> Path:
    """Write `gpu/<card>.json` in `folder`, and `gpu.md` from all files there; the first one's path.

    Raises:
        OSError: it cannot be written.
    """
    path = folder / "gpu" / checked.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(checked.to_json(), indent=1, sort_keys=True) + "\n")
    write_text(folder / "gpu.md", page(list(checks_in(path.parent))))
    return path


def page(found: Sequence[Mapping[str, Any]]) -> str:
    """The text of gpu.md."""
    if not found:
        return _HEAD + _NOTHING
    heads = ["", "target", *(str(one["card"]) for one in found)]
    rows = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    for goal in GOALS:
        side = "at most" if goal.is_most else "at least"
        cells = [_cell(goal, one["readings"].get(goal.figure) or {}) for one in found]
        rows.append([goal.text, f"{side} {goal.bound:g}", *cells])
        for value, text in _BESIDE.get(goal.figure, {}).items():
            numbers = [_found(one, goal.figure).get(value) for one in found]
            rows.append([text, "", *("–" if n is None else _plain(n) for n in numbers)])
    rows.append(["tests that need a card", "", *(str(one.get("tests") or "–") for one in found)])
    rows.append(["torch", "", *(_version(one) for one in found)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{_HEAD}{table}\n\nBold: the target is met.\n"


def _cell(goal: Goal, reading: Mapping[str, Any]) -> str:
    number = reading.get("found", {}).get(goal.value)
    if number is None:
        return str(reading.get("error") or "–").replace("|", "/")
    return f"**{number:.3g}**" if is_met(goal, number) else f"{number:.3g}"


def _found(one: Mapping[str, Any], figure: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (one["readings"].get(figure) or {}).get("found", {})
    return found


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def _version(one: Mapping[str, Any]) -> str:
    return str(one.get("facts", {}).get("versions", {}).get("torch", "–"))
