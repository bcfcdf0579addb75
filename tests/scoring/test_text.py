"""Scores and predictions as people and programs read them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import torch

from vitnas.scoring.answers import answers_to
from vitnas.scoring.evaluate import ClassScore, Evaluation
from vitnas.scoring.predict import Prediction
from vitnas.scoring.text import (
    classes_csv,
    evaluation_json,
    evaluation_text,
    predictions_csv,
    predictions_json,
    predictions_text,
)


def scored(names: tuple[str, ...]) -> Evaluation:
    """Three images of the class 0, of which one is taken for the class 2; one of the class 1."""
    scores = 5 * torch.eye(len(names))[[0, 0, 2, 1]]
    answers = answers_to(scores, torch.tensor([0, 0, 0, 1]))
    known = {0: ClassScore(names[0], 3, 2), 1: ClassScore(names[1], 1, 1)}
    classes = tuple(known.get(at, ClassScore(name, 0, 0)) for at, name in enumerate(names))
    speeds = {1: 1234.5, 32: 98765.4}
    notes = ("a note",)
    return Evaluation(
        "net", "PyTorch", "test images", answers, names, classes, speeds, "cpu", 2, notes
    )


def test_few_classes_have_a_table() -> None:
    lines = evaluation_text(scored(("ant", "bee", "cat", "3", "dog", "emu"))).splitlines()
    assert lines[:2] == ["net (PyTorch) on 4 test images", "  a note"]
    assert "  top-1             75.00 %, 95 % interval 30.06 to 95.44 (Wilson)" in lines
    assert "  images a second   1,234 (batch 1), 98,765 (batch 32); cpu, 2 threads" in lines
    assert lines[-7].split() == ["class", "images", "top-1", "0", "1", "2", "3", "4", "5"]
    assert lines[-6].split() == ["0", "ant", "3", "66.67", "%", "2", ".", "1", ".", ".", "."]
    assert lines[-4].split() == ["2", "cat", "0", "-", *"......"]
    assert lines[-3].split() == ["3", "0", "-", *"......"]  # a number is its own name
    assert max(map(len, lines)) <= 80


def test_many_classes_have_the_worst_and_the_mistakes() -> None:
    text = evaluation_text(scored(tuple(f"class {number}" for number in range(30))))
    assert "The lowest of 30 classes (all: --csv, --json):" in text
    assert text.splitlines()[-1].split() == ["class", "0", "class", "2", "1"]
    assert "class 7" not in text


def test_a_long_note_is_wrapped() -> None:
    found = scored(("ant", "bee", "cat"))
    text = evaluation_text(Evaluation(**{**vars(found), "notes": ("word " * 30,)}))
    assert text.splitlines()[2].startswith("    word")
    assert max(map(len, text.splitlines())) <= 80


def test_no_mistake_is_said() -> None:
    found = scored(tuple("abcdefghijklmnopqrstuvwxy"))
    right = answers_to(torch.eye(25), torch.arange(25))
    text = evaluation_text(Evaluation(**{**vars(found), "answers": right}))
    assert text.endswith("No image is taken for another class.")


def test_the_same_as_plain_values() -> None:
    tree = json.loads(json.dumps(evaluation_json(scored(("ant", "bee", "cat")))))
    assert (tree["top1"], tree["top5"], tree["num_images"]) == (75.0, None, 4)
    assert tree["calibration_bins"] == 15
    assert tree["classes"][0] == {"name": "ant", "images": 3, "correct": 2, "top1": 200 / 3}
    assert {"class": "ant", "predicted": "cat", "images": 1} in tree["confusion"]
    assert sum(pair["images"] for pair in tree["confusion"]) == 4
    assert tree["images_a_second"][0] == {"batch": 1, "speed": 1234.5}


def test_classes_as_csv() -> None:
    rows = list(csv.reader(io.StringIO(classes_csv(scored(("a,b", "bee", "cat"))))))
    assert rows[0] == ["class", "images", "correct", "top1"]
    assert rows[1][:3] == ["a,b", "3", "2"]
    assert rows[3] == ["cat", "0", "0", ""]


FOUND = [
    Prediction(Path("a.png"), problem="no image"),
    Prediction(Path("b, c.png"), (("x", 0.75), ("y", 0.25))),
]


def test_predictions_of_one_class_are_lines() -> None:
    one = Prediction(Path("b.png"), (("x", 0.75),))
    lines = list(predictions_text([one], [Path("longer.png")]))
    assert lines == ["b.png        75.00%  x"]


def test_predictions_of_several_classes_are_paragraphs() -> None:
    lines = list(predictions_text(FOUND, [one.file for one in FOUND]))
    assert lines == ["b, c.png", "   75.00%  x", "   25.00%  y"]


@pytest.mark.parametrize("classes", [(("x", 0.75),), (("x", 0.75), ("y", 0.25))])
def test_a_name_with_a_line_break_is_in_one_line(classes: tuple[tuple[str, float], ...]) -> None:
    lines = list(predictions_text([Prediction(Path("a\nb"), classes)], [Path("a\nb")]))
    assert lines[0].startswith(r"a\nb")
    assert "\n" not in "".join(lines)


def test_predictions_as_json() -> None:
    tree = json.loads("\n".join(predictions_json(FOUND)))
    assert tree[0] == {"file": "a.png", "problem": "no image"}
    assert tree[1]["classes"][1] == {"class": "y", "probability": 0.25}
    assert json.loads("\n".join(predictions_json([]))) == []


def test_json_comes_as_it_is_found() -> None:
    lines = predictions_json(iter([FOUND[1], FOUND[1]]))
    assert next(lines) == "["
    assert next(lines).endswith("]},")


def test_predictions_as_csv() -> None:
    rows = list(csv.reader(predictions_csv(FOUND)))
    assert rows[0] == ["file", "class", "probability", "class_2", "probability_2"]
    assert rows[1:] == [["b, c.png", "x", "0.75", "y", "0.25"]]
