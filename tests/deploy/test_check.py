"""A whole check of a real run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.engine.conftest import SMALL, make_space
from vitnas.config.data import DataConfig
from vitnas.deploy import check
from vitnas.deploy.text import check_text
from vitnas.engine.search import run_search
from vitnas.errors import VitnasError
from vitnas.run import Run
from vitnas.scoring.answers import Answers


@pytest.mark.slow
def test_a_network_of_a_run(searched: Run) -> None:
    pytest.importorskip("onnxruntime")
    number = searched.front[0].number
    said: list[str] = []
    found = check.deploy_check(
        searched.path, trials=[number], rounds=1, notice=said.append, part="val"
    )
    (one,) = found.networks
    assert one.trial == number
    assert said == [f"trial {number}: exporting, scoring and timing ..."]
    assert found.num_images > 100
    exact, small, half = (one.forms[name] for name in ("float", "int8", "fp16"))
    assert exact.top1 == pytest.approx(searched.front[0].curve[-1], abs=0.5)
    assert small.lost == pytest.approx(exact.top1 - small.top1)
    assert abs(half.lost) < 1
    assert half.bytes < exact.bytes
    assert set(one.changed) == set(searched.front[0].network.stages[0].mixers) | {
        mixer for stage in searched.front[0].network.stages for mixer in stage.mixers
    }
    assert {timing.batch for timing in one.timings} == {1, 32}
    assert all(ms > 0 for timing in one.timings for ms in timing.ms.values())
    assert one.operators["TensorRT"] > 10
    assert (one.remedy is not None) == (small.lost > 1)
    assert f"trial {number}: " in check_text(found)


@pytest.mark.slow
def test_networks_for_images_of_several_sizes(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    tree = make_space().to_tree()
    tree["model"] |= {"img_size": {"choice": [8, 16]}}
    tree["proxy"] |= {"epochs": 1}
    options = replace(SMALL, trials=4, keep_weights="50MB")
    run = run_search(make_space(**tree), tmp_path / "run", options)
    sizes = {trial.network.image_hw: trial.number for trial in run.complete}
    assert len(sizes) == 2
    found = check.deploy_check(run.path, trials=list(sizes.values()), rounds=1, part="val")
    assert found.notes == ()
    for one in found.networks:
        assert one.trial is not None
        trial = next(trial for trial in run.complete if trial.number == one.trial)
        assert one.forms["float"].top1 == pytest.approx(trial.curve[-1], abs=0.5)


_ONE_AND_TWO = ([True] * 8 + [False] * 2, [True] * 8 + [False, True])
"""Of ten images, those that are right where one and where two have changed."""


def _right(*marks: bool) -> Answers:
    """Answers to images of two classes, of which these are right."""
    labels, one = np.zeros(len(marks), np.int64), np.ones(len(marks))
    predicted = 1 - np.array(marks, np.int64)
    return Answers(labels, predicted, one, one, np.ones(len(marks), np.bool_), 2)


def test_no_change_on_few_images_is_no_certainty(tmp_path: Path) -> None:
    """The error of a difference is at least that of one image that changes."""
    (tmp_path / "f").touch()
    exact = _right(*[True] * 9, False)
    assert check._form(exact, exact, tmp_path / "f").error == 0
    assert check._form(_right(*[True] * 9, False), exact, tmp_path / "f").error == 10
    one, two = (check._form(_right(*marks), exact, tmp_path / "f") for marks in _ONE_AND_TWO)
    assert one.error == pytest.approx(10)
    assert two.lost == 0
    assert two.error == pytest.approx(100 * (2 / 10 / 9) ** 0.5)


def test_nothing_is_not_the_current_folder() -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(VitnasError, match=r"DIR\|RUN: is empty"):
        check.deploy_check("", DataConfig(name="digits"))


@pytest.mark.slow
def test_without_onnxruntime_it_is_one_line(searched: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "onnxruntime not installed (pip install vitnas[onnx])"
    monkeypatch.setattr(check, "without_onnx", lambda: missing)
    with pytest.raises(VitnasError, match=r"deploy-check: onnxruntime not installed \(pip"):
        check.deploy_check(searched.path, DataConfig(name="digits"))
