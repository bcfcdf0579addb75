"""The command's mistakes: one line, exit code 2, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitnas.cli import main


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--networks", "2"], "--networks = 2: should be greater than or equal to 4 (nearest: 4)"),
        (["--seeds", "1"], "--seeds = 1: should be greater than or equal to 2 (nearest: 2)"),
        (["--long-epochs", "10"], "must be above the 10 epochs of the space's proxy (nearest: 11)"),
        (["--workers", "0"], "--workers = 0: should be greater than or equal to 1"),
        (["--backend", "slurm"], "--backend = 'slurm': should be"),
    ],
)
def test_a_mistake_is_one_line(
    options: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "digits", *options])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert line in error
    assert len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())
