"""Scores and predictions for a terminal, as plain values, and as rows of a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from vitnas import __version__
from vitnas.columns import columns
from vitnas.errors import in_one_line, printable
from vitnas.scoring.answers import BINS
from vitnas.scoring.evaluate import Evaluation
from vitnas.scoring.predict import Prediction
from vitnas.words import plural

_MOST_IN_A_TABLE = 20
"""Classes of a confusion matrix that is printed; of more, the most frequent mistakes are."""
_MISTAKES = 10
_WIDEST = 60  # characters of the column of files
_LONGEST = 24  # characters of a class's name in a table


def evaluation_text(found: Evaluation) -> str:
    """Scores, each class, and which classes are taken for which."""
    answers = found.answers
    low, high = answers.top1_interval
    lines = [f"{found.model} ({found.runtime}) on {len(answers):,} {found.images}"]
    lines += [line for note in found.notes for line in _wrapped(note)]
    rows = [("top-1", f"{answers.top1:.2f} %, 95 % interval {low:.2f} to {high:.2f} (Wilson)")]
    if answers.top5 is not None:
        rows.append(("top-5", f"{answers.top5:.2f} %"))
    rows.append(("log-loss", f"{answers.log_loss:.4f} nats"))
    error = f"{answers.calibration_error:.2f} points (ECE, {BINS} bins of equal width)"
    rows.append(("calibration error", error))
    if found.speeds:
        speeds = ", ".join(f"{v:,.0f} (batch {size})" for size, v in found.speeds.items())
        rows.append(("images a second", f"{speeds}; {_place(found)}"))
    lines += ["", *(f"  {name:<18}{value}" for name, value in rows), ""]
    if len(found.labels) <= _MOST_IN_A_TABLE:
        return "\n".join([*lines, *_matrix(found)])
    return "\n".join([*lines, *_worst(found), "", *_mistakes(found)])


def _wrapped(note: str) -> list[str]:
    return wrap(note, 78, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _place(found: Evaluation) -> str:
    threads = plural(found.threads, "thread")
    return f"{found.device}, {threads}" if found.device == "cpu" else found.device


def _matrix(found: Evaluation) -> list[str]:
    """The classes with their top-1, and how often each is taken for which."""
    numbers, places = found.answers.pairs(), {name: at for at, name in enumerate(found.labels)}
    heads = ("class", "images", "top-1", *map(str, range(len(found.labels))))
    rows = [
        (
            _numbered(places[one.name], one.name),
            f"{one.images:,}",
            _percent(one.top1),
            *(_count(numbers.get((places[one.name], at), 0)) for at in range(len(found.labels))),
        )
        for one in found.classes
    ]
    return ["Rows are true classes, columns what they are taken for:", *columns([heads, *rows])]


def _numbered(number: int, name: str) -> str:
    return name if name == str(number) else f"{number} {_short(name)}"


def _worst(found: Evaluation) -> list[str]:
    """The classes with the lowest top-1."""
    known = [one for one in found.classes if one.images]
    worst = sorted(known, key=lambda one: one.top1 or 0.0)[:_MISTAKES]
    rows = [(_short(one.name), f"{one.images:,}", _percent(one.top1)) for one in worst]
    title = f"The lowest of {len(found.classes)} classes (all: --csv, --json):"
    return [title, *columns([("class", "images", "top-1"), *rows])]


def _mistakes(found: Evaluation) -> list[str]:
    rows = [
        (_short(true), _short(other), f"{number:,}")
        for true, other, number in found.confusions[:_MISTAKES]
    ]
    if not rows:
        return ["No image is taken for another class."]
    heads = ("class", "taken for", "images")
    return ["The most frequent mistakes:", *columns([heads, *rows], left=(0, 1))]


def _short(name: str) -> str:
    told = printable(name)
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 3]}..."


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} %"


def _count(number: int) -> str:
    return str(number) if number else "."


def evaluation_json(found: Evaluation) -> dict[str, Any]:
    """Scores as plain values."""
    answers = found.answers
    pairs = answers.pairs().items()
    return {
        "vitnas": __version__,
        "model": found.model,
        "runtime": found.runtime,
        "images": found.images,
        "num_images": len(answers),
        "notes": list(found.notes),
        "top1": answers.top1,
        "top1_interval": list(answers.top1_interval),
        "top5": answers.top5,
        "log_loss": answers.log_loss,
        "calibration_error": answers.calibration_error,
        "calibration_bins": BINS,
        "device": found.device,
        "threads": found.threads,
        "images_a_second": [
            {"batch": size, "speed": speed} for size, speed in found.speeds.items()
        ],
        "classes": [vars(one) | {"top1": one.top1} for one in found.classes],
        "confusion": [
            {"class": found.labels[true], "predicted": found.labels[other], "images": number}
            for (true, other), number in pairs
        ],
    }


def classes_csv(found: Evaluation) -> str:
    """Each class with its images and its top-1 in percent."""
    rows = [
        (one.name, one.images, one.correct, "" if one.top1 is None else one.top1)
        for one in found.classes
    ]
    return "".join(f"{_row(row)}\n" for row in (("class", "images", "correct", "top1"), *rows))


def predictions_text(found: Iterable[Prediction], paths: Iterable[Path]) -> Iterator[str]:
    """A line for each prediction of one class; of several, a line for the file and for each."""
    width = min(_WIDEST, max(len(in_one_line(str(path))) for path in paths))
    for one in found:
        file = in_one_line(str(one.file))
        classes = [f"{share:7.2%}  {name}" for name, share in one.classes]
        if len(classes) == 1:
            yield f"{file:<{width}}  {classes[0]}"
        elif classes:
            yield file
            yield from (f"  {line}" for line in classes)


def predictions_json(found: Iterable[Prediction]) -> Iterator[str]:
    """An array, a line for each file; `problem` in place of `classes` where it cannot be read."""
    yield "["
    before = ""
    for one in found:
        if before:
            yield f"{before},"
        tree: dict[str, Any] = {"file": str(one.file), "problem": one.problem}
        if one.problem is None:
            classes = [{"class": name, "probability": share} for name, share in one.classes]
            tree = {"file": str(one.file), "classes": classes}
        before = f"  {json.dumps(tree)}"
    yield from (before, "]")


def predictions_csv(found: Iterable[Prediction]) -> Iterator[str]:
    """Rows of a file, its classes and their probabilities; without files that cannot be read."""
    for number, one in enumerate(one for one in found if one.problem is None):
        if not number:
            ranks = ["", *(f"_{rank}" for rank in range(2, len(one.classes) + 1))]
            yield _row(
                ["file", *(f"{x}{rank}" for rank in ranks for x in ("class", "probability"))]
            )
        yield _row([one.file, *(value for pair in one.classes for value in pair)])


def _row(values: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()
