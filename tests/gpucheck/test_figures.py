"""The figures run, at the size of a dry run."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from vitnas import api
from vitnas.cost.closed_form import closed_form
from vitnas.gpucheck.figures import (
    DRY,
    FIGURES,
    FULL,
    agreement,
    digits,
    hybrid,
    made_up,
    proxy,
    repeated,
)
from vitnas.records import Outcome

LONG = {"digits", "shared"}


def test_the_network_of_the_full_check_has_fifty_megaflops() -> None:
    assert closed_form(hybrid(FULL.large.width)).flops == pytest.approx(50e6, rel=0.1)


def test_as_many_images_train_as_are_said() -> None:
    images = made_up(50)
    assert (len(images.train), len(images.val)) == (50, 5)


def test_a_device_agrees_with_itself() -> None:
    assert agreement(DRY) == {"difference": 0.0}


@pytest.mark.slow
def test_a_proxy_training_is_timed() -> None:
    found = proxy(DRY)
    assert found["seconds"] > 0
    assert found["images_per_second"] > 0
    assert "memory_mb" not in found


def test_a_trial_repeats_itself_on_the_cpu() -> None:
    assert repeated(DRY) == {"difference": 0.0}


def test_a_search_whose_trials_fail_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no time."""
    trial = SimpleNamespace(outcome=Outcome.FAILED, error="no such kernel")
    monkeypatch.setattr(api, "search", lambda *_, **__: SimpleNamespace(trials=[trial] * 2))
    with pytest.raises(RuntimeError, match="2 trials failed: no such kernel"):
        digits(DRY)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in LONG else pytest.mark.slow)
        for name in FIGURES
    ],
)
def test_a_figure_prints_its_values_last(name: str) -> None:
    command = [sys.executable, "-m", "vitnas.gpucheck.figures", name, "--dry"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert all(value >= 0 for value in json.loads(done.stdout.splitlines()[-1]).values())
