"""Commands in an empty folder, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.trees import space_tree
from vitnas.cli import main

SERIAL = ("--backend", "serial", "--no-baselines", "--trials", "3", "--gpus-per-trial", "0")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in an empty folder, so that what it leaves there is seen."""
    monkeypatch.chdir(tmp_path)


def vitnas_says(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2
) -> tuple[str, str]:
    """What the command prints to stdout and stderr; its exit code must be `code`."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert ended.value.code == code, said.err
    return said.out, said.err


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a mistake is answered with; nothing may have been written."""
    before = sorted(Path.cwd().rglob("*"))
    out, err = vitnas_says(capsys, *arguments)
    assert all(line.endswith(" ...") for line in out.splitlines()), "but for what was being done"
    assert err.startswith("vitnas: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.strip().isprintable()
    assert sorted(Path.cwd().rglob("*")) == before
    return err.removeprefix("vitnas: ").rstrip("\n")


def space_file(changes: Mapping[str, Any], name: str = "s.yaml") -> str:
    """A file of `space_tree(changes)`."""
    Path(name).write_text(yaml.safe_dump(space_tree(changes), sort_keys=False))
    return name
