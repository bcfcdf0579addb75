"""A check as text for a terminal, and as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from vitnas.columns import columns
from vitnas.deploy.delegates import DELEGATES
from vitnas.deploy.result import POINT, DeployCheck, Form, NetworkCheck
from vitnas.report.text import (
    NOTHING,
    count_text,
    listed,
    percent_text,
    plural,
    signed_text,
)

WIDTH = 80
_WORDS = "not taken"
"""The head of a last column that is no number."""
_TWO_SIDED = 1.96  # standard errors on each side of a 95 % interval
_LONGEST = 9  # characters of a folder's name in a table
_Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def check_text(found: DeployCheck) -> str:
    """The check for a terminal of 80 columns."""
    lines = list(_paragraph(_title(found)))
    lines += [line for note in found.notes for line in _paragraph(note)]
    for one in found.networks:
        lines += _paragraph(_network(one), "  ")
    for title, (heads, rows), remarks in _tables(found):
        lines += ["", *_paragraph(title), *columns(_fitted([heads, *rows]), left=_left(heads))]
        lines += [line for remark in remarks for line in _paragraph(remark)]
    return "\n".join([*lines, "", *_paragraph(_closing(found))])


def check_markdown(found: DeployCheck, command: str) -> str:
    """The same as a page, with the command that made it."""
    parts = [f"# Where {found.subject} will run", f"`{command}`", _title(found), *found.notes]
    parts.append("\n".join(f"- {_network(one)}" for one in found.networks))
    for title, (heads, rows), remarks in _tables(found):
        marks = ["---", *["--:"] * (len(heads) - 1)]
        table = [heads, tuple(marks), *rows]
        parts += [title, "\n".join(f"| {' | '.join(row)} |" for row in table), *remarks]
    return "\n\n".join([*parts, _closing(found)]) + "\n"


def _left(heads: Sequence[str]) -> tuple[int, ...]:
    """The columns of words."""
    return (0, -1) if heads[-1] == _WORDS else (0,)


def _fitted(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The same with a last column of words over as many lines as it needs."""
    if rows[0][-1] != _WORDS:
        return rows
    others = zip(*(row[:-1] for row in rows), strict=True)
    left = WIDTH - sum(max(map(len, cells)) + 2 for cells in others)
    fitted = []
    for row in rows:
        first, *more = wrap(row[-1], left) or [""]
        fitted.append((*row[:-1], first))
        fitted += [(*[""] * (len(row) - 1), line) for line in more]
    return fitted


def is_page(head: bytes) -> bool:
    """Whether a file begins as a page of `check_markdown` does."""
    return head.startswith(b"# Where ") and b"will run" in head


def _title(found: DeployCheck) -> str:
    versions = found.facts.get("versions", {})
    hardware = found.facts.get("hardware", {})
    number = plural(len(found.networks), "network")
    return (
        f"{found.subject}: {number} on {found.num_images:,} {found.images}; "
        f"torch {versions.get('torch', NOTHING)}, onnxruntime "
        f"{found.facts.get('onnxruntime', NOTHING)}, {hardware.get('cpu', NOTHING)}, "
        f"{plural(found.facts.get('threads', 1), 'core')}."
    )


def _network(one: NetworkCheck) -> str:
    costs = f"{count_text(one.flops)} FLOPs, {count_text(one.num_params)} parameters"
    return f"{one.name}: {one.line}; {costs}"


def _tables(found: DeployCheck) -> Iterator[tuple[str, _Table, list[str]]]:
    yield (
        "Milliseconds of a batch on the CPU, the median of passes that take turns; × = times as "
        "fast as eager PyTorch:",
        _latency(found),
        _times(found),
    )
    yield (
        f"Top-1 in percent on the same images (int8: calibrated on {found.calibration} training "
        "images that score nothing; ± is one standard error of its change), and the files:",
        _accuracy(found),
        list(_remedies(found)),
    )
    if any(one.changed for one in found.networks):
        yield (
            f"Percent of {found.training} other training images whose answer changes when the "
            "operators of one token mixer alone are int8:",
            _mixers(found),
            [],
        )
    yield (
        "Operators that delegates do not take, by their lists; nothing was run there:",
        _lint(found),
        [f"{one.name}: {one.source}." for one in DELEGATES],
    )


def _name(one: NetworkCheck) -> str:
    """In a table: a trial's number, or a folder's own name as far as it leaves room."""
    if one.trial is not None:
        return str(one.trial)
    name = Path(one.name).name or one.name
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def _head(found: DeployCheck) -> str:
    return "folder" if found.networks[0].trial is None else "trial"


def _latency(found: DeployCheck) -> _Table:
    names = [name for name in found.networks[0].timings[0].ms if name != "pytorch"]
    heads = (_head(found), "batch", "threads", "PyTorch", *(x for n in names for x in (n, "×")))
    rows = []
    for one in found.networks:
        for timing in one.timings:
            cells = [_ms(timing.ms["pytorch"])]
            for name in names:
                ms, ratio = timing.ms.get(name), timing.faster(name)
                cells += [_ms(ms), NOTHING if ratio is None else _ratio(ratio)]
            rows.append((_name(one), str(timing.batch), str(timing.threads), *cells))
    return heads, rows


def _ms(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _ratio(value: float) -> str:
    """Three digits: `0.847`, `8.47`, `15.1`, `3,960`."""
    shown = float(f"{value:.3g}")
    return f"{shown:,.0f}" if shown >= 100 else f"{shown:#.3g}"


def _times(found: DeployCheck) -> list[str]:
    """What is to be said of the times."""
    load, threads = found.facts.get("load", 0.0), found.facts.get("threads", 1)
    busy = (
        f"The machine was busy (load {load:g} on {plural(threads, 'core')}): long passes are "
        "interrupted more often than short ones, so these times and ratios mislead."
    )
    return [*([busy] if load > threads / 2 else []), *_half(found)]


def _half(found: DeployCheck) -> list[str]:
    if any("fp16" in timing.ms for one in found.networks for timing in one.timings):
        return []
    return ["fp16 is not timed: onnxruntime has no fp16 kernels for this CPU."]


def _accuracy(found: DeployCheck) -> _Table:
    heads = (_head(found), "float", "int8", "±", "change", "fp16", "change")
    rows = []
    for one in found.networks:
        exact, small, half = (one.forms[name] for name in ("float", "int8", "fp16"))
        sizes = (_kilobytes(form) for form in (exact, small, half))
        top1, change, error = _scored(small)
        cells = (percent_text(exact.top1), top1, error, change, *_scored(half)[:2], *sizes)
        rows.append((_name(one), *cells))
        if one.remedy and one.remedy.parts:
            top1, change, error = _scored(one.remedy.form)
            size = _kilobytes(one.remedy.form)
            rows.append(("remedy", NOTHING, top1, error, change, *[NOTHING] * 3, size, NOTHING))
    return (*heads, "float kB", "int8 kB", "fp16 kB"), rows


def _scored(form: Form) -> tuple[str, str, str]:
    """Top-1, its difference to the float network's, and the error of that."""
    return percent_text(form.top1), signed_text(0.0 - form.lost), percent_text(form.error)


def _kilobytes(form: Form) -> str:
    return f"{form.bytes / 1e3:,.0f}"


def _remedies(found: DeployCheck) -> Iterator[str]:
    for one in found.networks:
        if one.remedy is None:
            continue
        parts, gains = one.remedy.parts, one.remedy.gains
        first = sorted((part for part in gains if part), key=lambda part: gains[part])[:4]
        alone = ", ".join(f"{part} {gains[part]:.1f}" for part in first)
        remedy = "none: no part helps."
        if parts:
            count = plural(one.remedy.nodes, "operator")
            remedy = f"{listed(parts)} in float ({count}; nodes_to_exclude)."
            if one.remedy.form.lost > POINT:
                remedy += " This still loses more than a point."
        yield (
            f"{one.name}: int8 changes {gains['']:.1f} % of the answers to training images; with "
            f"one part left in float: {alone} %. Remedy: {remedy}"
        )


def _mixers(found: DeployCheck) -> _Table:
    names = list(dict.fromkeys(name for one in found.networks for name in one.changed))
    rows = [
        (_name(one), *(percent_text(one.changed.get(name)) for name in names))
        for one in found.networks
    ]
    return (_head(found), *names), rows


def _lint(found: DeployCheck) -> _Table:
    rows: list[tuple[str, ...]] = []
    for delegate in DELEGATES:
        for one in found.networks:
            refused = one.refused[delegate.name]
            number = f"{sum(refused.values())} of {one.operators[delegate.name]}"
            what = ", ".join(f"{name} {count}" for name, count in refused.items())
            rows.append((delegate.name, _name(one), number, what or "none"))
    return ("delegate", _head(found), "operators", _WORDS), rows


def _closing(found: DeployCheck) -> str:
    small = [one.forms["int8"] for one in found.networks]
    within = sum(form.lost <= POINT for form in small)
    text = f"int8 loses at most a point of top-1 in {within} of {plural(len(small), 'network')}."
    known = _TWO_SIDED * max(form.error for form in small)
    if known > POINT:
        text += (
            f" These {found.num_images:,} images are too few to tell a point: a change of top-1 is "
            f"known to ±{known:.1f} points only."
        )
    return f"{text} {found.verdict}".strip()


def _paragraph(text: str, indent: str = "") -> Iterable[str]:
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
