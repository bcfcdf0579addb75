"""A chosen network in words, and as plain values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.runs import ENVIRONMENT, invented_run, run_of, trial
from vitnas.exported.choose import Target
from vitnas.report.choice import choose
from vitnas.report.choice_text import choice_json, choice_text


def test_without_the_number_of_images_words_say_so() -> None:
    data = {**ENVIRONMENT["data"], "num_val_images": None}
    known = run_of(Path("r"), trial(0), trial(1, 60.0), environment={**ENVIRONMENT, "data": data})
    assert "cannot be said" in choice_text(choose(known, Target()))


@pytest.mark.parametrize(
    "target", [Target(), Target({"flops": 3e8}), Target(min_top1=30.0, is_robust=True)]
)
def test_words_and_json_of_an_invented_run(tmp_path: Path, target: Target) -> None:
    run = invented_run(tmp_path / "run", 40, seed=3)
    found = choose(run, target)
    text = choice_text(found)
    assert f"Trial {found.trial.number} has the" in text
    assert f"--trial {found.trial.number} --to" in text
    assert "total" in text
    assert "nan" not in text
    values = json.loads(json.dumps(choice_json(found), allow_nan=False))
    assert values["trial"] == found.trial.number
    assert values["flops"] == found.trial.flops
    assert len(values["neighbours"]) == len(found.neighbours)


def test_a_run_of_one_network_is_alone() -> None:
    text = choice_text(choose(run_of(Path("r"), trial(0)), Target()))
    assert "alone on the front" in text
    assert "1 network" in text
