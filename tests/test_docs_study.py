"""The study of the papers' ideas finds known effects again; its page is what its table gives."""

from __future__ import annotations

import importlib
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from vitnas.config.space import load_space
from vitnas.engine.decide.locate import locate

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("study")


def test_an_effect_is_found_within_its_interval_as_often_as_it_says(study: ModuleType) -> None:
    """Re-attention is worth a point and 40 % more FLOPs, a doubling of FLOPs three points."""
    luck = np.random.default_rng(0)
    covered, rounds = 0, 300
    for _ in range(rounds):
        trainings = []
        for depth, idea, seed in product((4, 6, 8, 12), (0, 1), range(3)):
            flops = int(1e5 * depth * 1.4**idea)
            top1 = 60 + 3 * np.log2(flops / 1e5) + idea + luck.normal(0, 0.5)
            row = ("vit", "deepvit")[idea] + f"_{depth}b"
            trainings.append(study.Training("deepvit_fig1", row, flops, 1, seed, (10.0, top1)))
        (idea, raw, like), _ = study.compared(study.by_twin(trainings))
        assert idea.twin == "deepvit_fig1"
        assert raw.value > like.value
        covered += abs(like.value - 1.0) <= like.margin
    assert 0.91 <= covered / rounds <= 0.99


def test_rows_that_were_trained_once_have_the_error_of_their_images(study: ModuleType) -> None:
    once = [
        study.Training("deepvit_fig1", f"{kind}_{depth}b", 1000 * depth, 1, 0, (50.0 + depth,))
        for kind, depth in product(("vit", "deepvit"), (4, 6, 8, 12))
    ]
    whole, deepest = study.compared(study.by_twin(once))
    assert whole[1].value == deepest[1].value == 0
    binomial = 100 * (0.5**2 / 3000) ** 0.5
    assert deepest[1].error == pytest.approx(binomial * 2**0.5, rel=0.04)
    assert whole[1].error == pytest.approx(binomial * 0.5**0.5, rel=0.04)


def test_a_row_that_was_not_trained_gives_no_claim(study: ModuleType) -> None:
    rows = ("vit_4b", "vit_6b", "vit_8b", "vit_12b", "deepvit_12b")
    trained = [study.Training("deepvit_fig1", r, 1000 + len(r), 1, 0, (50.0,)) for r in rows]
    assert [i.name for i, _, _ in study.compared(study.by_twin(trained))] == [
        "the same, in the deepest alone"
    ]


def test_the_rows_that_are_compared_are_rows_of_their_twins(study: ModuleType) -> None:
    for twin in {idea.twin for idea in study.IDEAS}:
        space = load_space(f"small/{twin}")
        rows = {study.row_of(locate(space, c, twin).params) for c in space.networks()}
        wanted = {row for idea in study.IDEAS if idea.twin == twin for p in idea.pairs for row in p}
        assert wanted <= rows, twin


def test_the_page_is_what_its_table_gives(study: ModuleType) -> None:
    trainings = study.read_table(study.TABLE)
    assert study.PAGE.read_text(encoding="utf-8") == study.page_of(trainings)
    assert len(study.compared(study.by_twin(trainings))) == len(study.IDEAS)
