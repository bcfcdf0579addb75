"""The command confirm."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitnas.cli.app import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main(["confirm", *arguments])
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_a_mistake_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "gone: no such folder" in refused(capsys, str(tmp_path / "gone"))
    assert "--networks = 0" in refused(capsys, str(tmp_path), "--networks", "0")
    assert "--trial" in refused(capsys, str(tmp_path), "--trial", "x")
    assert "--trial" in refused(capsys, str(tmp_path), "--trial", "-1")
