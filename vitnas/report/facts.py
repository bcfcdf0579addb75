"""Facts about a run: data, proxy, sessions. In old runs any of them may be missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from vitnas.config.differences import mark_of
from vitnas.report.text import NOTHING, plural
from vitnas.run import Run
from vitnas.sessions import Session

_NAMED = 20  # classes
_APART = ("classes", "fingerprint", "by_size")
"""Names have a row, a fingerprint repeats the numbers, and values by size are long."""


def space_name(run: Run) -> str:
    return str(run.space.get("name") or run.name)


def facts(run: Run) -> list[tuple[str, str]]:
    """(label, value) pairs about space, data, proxy and seed. Unknown values are left out."""
    sessions = run.environment.sessions
    pairs = [
        ("Run", str(run.path)),
        ("Space", space_name(run)),
        ("Trials asked for", str(run.num_trials or "")),
        ("Data", _data(run)),
        ("Classes", _classes(run)),
        ("Proxy training", _mapping(run.environment.proxy.told())),
        ("Recipe tuned first", run.environment.tuned or ""),
        ("Objectives", _mapping(_inner(run.space, "objectives"))),
        ("Limits", _mapping(_inner(run.space, "limits"))),
        ("Proposed by", _distinct(_value(one.sampler) for one in sessions)),
        ("Stopped early by", _distinct(pruner_text(one) for one in sessions)),
        ("Seed", _seed(run)),
        ("Trained on", ", ".join(sorted({trial.device for trial in run.trials if trial.device}))),
        ("Measured on", ", ".join(sorted({t.measured_on for t in run.trials if t.measured_on}))),
        ("Taken over from", _taken_over(run)),
        ("Trained first", ", ".join(t.origin for t in run.trials if t.origin and not t.taken)),
    ]
    return [(label, value) for label, value in pairs if value]


def _data(run: Run) -> str:
    """The images; with several folds the same image trains in one fold and scores in another."""
    facts = {name: x for name, x in run.environment.data.told().items() if name not in _APART}
    told, folds = _mapping(facts), _inner(run.space, "data").get("folds")
    if digest := mark_of(_inner(run.environment.data.told(), "fingerprint")):
        told += f", fingerprint {digest}"
    if not told or not isinstance(folds, int) or folds == 1:
        return told
    return f"{told}; {folds} folds: train images are those of one, val images those of all"


def _classes(run: Run) -> str:
    """The names of the first classes, and how many more there are."""
    names = run.environment.data.classes or []
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def pruner_text(session: Session) -> str:
    """`curve, confidence 0.98`; `nobody` without pruning; empty if it is not known."""
    if session.pruner is None:
        return ""
    return "nobody" if session.pruner.name == "none" else _mapping(session.pruner.told())


def _seed(run: Run) -> str:
    return "" if run.environment.seed is None else str(run.environment.seed)


def _distinct(texts: Iterable[str]) -> str:
    """The different values of the sessions."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def _taken_over(run: Run) -> str:
    """`results/a (12 trials)` for every run from which results were taken over."""
    runs = Counter(trial.origin.rpartition(", trial ")[0] for trial in run.trials if trial.taken)
    return ", ".join(f"{path} ({plural(count, 'trial')})" for path, count in runs.items())


def session_rows(run: Run) -> list[dict[str, str]]:
    """One row for each session: started, command, revision, hardware, workers, versions."""
    return [_session_row(session) for session in run.environment.sessions]


def _session_row(session: Session) -> dict[str, str]:
    return {
        "started": _value(session.started).replace("T", " ") or NOTHING,
        "command": _value(session.command) or NOTHING,
        "revision": _revision(session) or NOTHING,
        "hardware": hardware_text(session) or NOTHING,
        "workers": " × ".join(
            text for fact in (session.workers, session.backend) if (text := _value(fact))
        )
        or NOTHING,
        "versions": versions_text(session) or NOTHING,
    }


def _revision(session: Session) -> str:
    """Twelve digits; `+` where files differed."""
    told = _value(session.git_revision)
    return told[:12] + "+" * told.endswith("+")


def hardware_text(session: Session) -> str:
    """`NVIDIA H100, 16 cores, 128 GB` from what is known."""
    hardware = session.hardware
    parts = [_value(name) for name in (session.device, hardware.cpu) if name != "cpu"]
    if hardware.cores is not None:
        parts.append(plural(hardware.cores, "core"))
    if hardware.memory_gb is not None:
        parts.append(f"{hardware.memory_gb:.3g} GB")
    return ", ".join(dict.fromkeys(part for part in parts if part))


def versions_text(session: Session) -> str:
    """`python 3.11.7, torch 2.6.0` from what is known."""
    return ", ".join(f"{name} {value}" for name, value in session.versions.items() if value)


def _inner(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = tree.get(name)
    return part if isinstance(part, Mapping) else {}


def _mapping(tree: Mapping[str, Any]) -> str:
    """`cifar10, epochs 12, batch size 512`. A name has no label."""
    parts = (
        said if name == "name" else f"{_label(name)} {said}"
        for name, value in tree.items()
        if (said := _value(value))
    )
    return ", ".join(part for part in parts if part)


def _label(name: Any) -> str:
    return str(name).removeprefix("num_").replace("_", " ")


def _value(value: Any) -> str:
    """One line for any plain value; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 1_000 else str(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 10_000 and value.is_integer() else f"{value:g}"
    if isinstance(value, Mapping):
        known = ((name, item) for name, item in value.items() if item is not None)
        return " ".join(f"{_label(name)} {_value(item)}" for name, item in known)
    if isinstance(value, (list, tuple)):
        return " ".join(_value(item) for item in value)
    return " ".join(str(value).split())
