"""`vitnas gpu-check`: what it says and writes, with figures in place of measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import complaint, vitnas_says
from vitnas.gpucheck import check
from vitnas.gpucheck.check import GpuCheck, Reading


def test_without_a_card_it_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.init", lambda: None)
    assert complaint(capsys, "gpu-check") == (
        "gpu-check: this machine has no CUDA device; --dry takes the CPU"
    )


def test_a_dry_run_writes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check, "_measured", lambda *_: Reading({"seconds": 1.0}))
    out, err = vitnas_says(capsys, "gpu-check", "--dry", code=2)
    assert out.startswith(f"dry run on the CPU: {len(check.GOALS)} figures")
    assert "failed" in out
    assert not err
    assert not list(tmp_path.iterdir())


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that met its targets."""
    readings = {
        goal.figure: Reading({"seconds": 5.0, "difference": 0.0, "ratio": 3.0})
        for goal in check.GOALS
    }
    found = GpuCheck("NVIDIA H200", {}, readings, "3 passed")
    monkeypatch.setattr(check, "check_gpu", lambda dry, notice: found)


@pytest.mark.usefixtures("measured")
def test_what_was_measured_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, _ = vitnas_says(capsys, "gpu-check", "--out", str(tmp_path), code=0)
    assert "tests that need a card: 3 passed" in out
    assert (tmp_path / "gpu" / "nvidia-h200.json").is_file()
    assert "**5**" in (tmp_path / "gpu.md").read_text()


@pytest.mark.usefixtures("measured")
def test_without_a_folder_nothing_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever has installed vitnas stands in a folder of his own."""
    monkeypatch.chdir(tmp_path)
    out, _ = vitnas_says(capsys, "gpu-check", code=0)
    assert out == "tests that need a card: 3 passed\n"
    assert not list(tmp_path.iterdir())
