"""Run the figures one after the other, each with a limit, and keep what they say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vitnas.environment import session_facts
from vitnas.errors import printable

_LIMIT_S = 150.0
"""Of one figure, and of the tests."""
_WHOLE_S = 590.0
"""Of all of them together; one for which less is left than it may take has what is left."""


class Goal(NamedTuple):
    """What a card of the H200's class is to reach: at most `bound`, or at least it."""

    figure: str
    value: str
    bound: float
    is_most: bool
    text: str


GOALS = (
    Goal("agreement", "difference", 1e-3, True, "logits: difference to the CPU, as a share"),
    Goal("repeated", "difference", 0.0, True, "curves of one trial, alone and beside another"),
    Goal("captured", "ratio", 1.0, False, "steps as a CUDA graph, times as fast as called"),
    Goal("proxy", "seconds", 8.0, True, "10 epochs of a hybrid on 50,000 images of 32 px, s"),
    Goal("digits", "seconds", 30.0, True, "24 trials of the space digits, s"),
    Goal("shared", "ratio", 2.0, False, "four small networks on one card, times one alone"),
)
"""One figure a row of the table, in this order."""


@dataclass(frozen=True)
class Reading:
    """What one figure came to.

    Attributes:
        found: values by name; empty if it failed.
        seconds: that it took, with its start.
        error: why it failed, in one line.
    """

    found: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class GpuCheck:
    """What a check came to.

    Attributes:
        card: the device's name.
        facts: versions, hardware, date and revision.
        readings: by figure.
        tests: how the CUDA tests of a checkout ended; empty where there is none.
    """

    card: str
    facts: Mapping[str, Any]
    readings: Mapping[str, Reading]
    tests: str = ""

    @property
    def file_name(self) -> str:
        """`nvidia-h200.json`."""
        return re.sub(r"[^a-z0-9]+", "-", self.card.lower()).strip("-") + ".json"

    @property
    def failed(self) -> list[str]:
        """The figures that were not measured."""
        found = {goal.figure: self.readings.get(goal.figure, Reading()) for goal in GOALS}
        return [goal.figure for goal in GOALS if goal.value not in found[goal.figure].found]

    def to_json(self) -> dict[str, Any]:
        return {"format": 1, **asdict(self)}


def is_met(goal: Goal, value: float | None) -> bool | None:
    """Whether a value reaches its target; None where it is not known."""
    if value is None:
        return None
    return value <= goal.bound if goal.is_most else value >= goal.bound


def check_gpu(dry: bool, notice: Callable[[str], None]) -> GpuCheck:
    """Measure all figures on this machine's card; on the CPU, and little of each, if `dry`.

    Raises:
        DeviceError: there is no CUDA device, and it is not a dry run.
    """
    card = "dry run on the CPU" if dry else _card()
    notice(f"{card}: {len(GOALS)} figures, at most {_WHOLE_S / 60:.0f} min ...")
    until = time.monotonic() + _WHOLE_S
    options = ["--dry"] if dry else []
    found = {}
    for goal in GOALS:
        command = [sys.executable, "-m", "vitnas.gpucheck.figures", goal.figure, *options]
        found[goal.figure] = _measured(command, until)
        notice(row_text(goal, found[goal.figure], dry))
    return GpuCheck(card, session_facts(), found, "" if dry else _tests(until))


def row_text(goal: Goal, reading: Reading, dry: bool = False) -> str:
    """`24 trials of the space digits, s: 21.3 (at most 30; met)`; of a dry run, that it runs."""
    value = reading.found.get(goal.value)
    if value is None:
        return f"{goal.text}: failed: {reading.error}"
    if dry:
        return f"{goal.text}: runs"
    side = "at most" if goal.is_most else "at least"
    met = "met" if is_met(goal, value) else "missed"
    return f"{goal.text}: {value:.3g} ({side} {goal.bound:g}; {met})"


def _card() -> str:
    import torch

    from vitnas.training.device import check_cuda

    check_cuda("gpu-check:", "; --dry takes the CPU")
    return torch.cuda.get_device_name()


def _left(until: float) -> float:
    """Seconds that a part of the check may take."""
    return max(0.0, min(_LIMIT_S, until - time.monotonic()))


def _measured(command: Sequence[str], until: float) -> Reading:
    started, limit = time.perf_counter(), _left(until)
    try:
        done = _run(command, limit)
        error = "" if not done.returncode else (_last(done.stderr) or f"exit {done.returncode}")
        found = {} if error else json.loads(_last(done.stdout))
    except subprocess.TimeoutExpired:
        found, error = {}, f"no end within {limit:.0f} s"
    except ValueError:
        found, error = {}, "it printed no figures"
    return Reading(found, round(time.perf_counter() - started, 1), error)


def _run(
    command: Sequence[str], limit: float, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`; too late, what the command has started ends with it.

    Raises:
        subprocess.TimeoutExpired: it did not end within `limit` seconds.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, text=True, cwd=folder, start_new_session=True, stdout=pipe, stderr=pipe
    ) as process:
        try:
            said = process.communicate(timeout=limit)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # others of it would disturb the next figure
            raise
    return subprocess.CompletedProcess(command, process.returncode, *said)


def _last(text: str) -> str:
    """The last line, without what cannot be printed."""
    lines = text.strip().splitlines()
    return printable(lines[-1]) if lines else ""


def _tests(until: float) -> str:
    """How the CUDA tests end, if this is a checkout of vitnas."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / "tests" / "conftest.py").is_file():
        return ""
    files = [p for p in (folder / "tests").rglob("test_*.py") if b"mark.cuda" in p.read_bytes()]
    command = [sys.executable, "-m", "pytest", "-m", "cuda", *map(str, sorted(files))]
    limit = _left(until)
    try:
        done = _run(command, limit, folder)
    except subprocess.TimeoutExpired:
        return f"no end within {limit:.0f} s"
    return ending(done.stdout)


def ending(said: str) -> str:
    """The last line that pytest has said, then the names of the tests that failed."""
    failed = re.findall(r"^FAILED \S+::(\S+)", said, re.MULTILINE)
    return "; ".join([_last(said).strip("= "), *failed])


def checks_in(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The checks that a folder holds, by the name of the card; other files are passed over."""
    for path in sorted(folder.glob("*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(found, dict) and found.get("format") == 1 and "readings" in found:
            yield found
