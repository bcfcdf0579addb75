"""`vitnas data`: what is kept, and what goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import complaint, vitnas_says
from tests.data.sets import complete, image_files
from vitnas.data.imageset import ImageSet, set_of


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ImageSet]:
    """Two sets; the first was used last."""
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", str(tmp_path / "kept"))
    found = []
    for number in range(2):
        root = tmp_path / f"data{number}"
        files = image_files(root, 3 + number)
        found.append(set_of(tmp_path / "kept", root, files, (4, 6)))
        complete(found[-1], files)
        os.utime(found[-1].folder / "set.json", (10**9 - number, 10**9 - number))
    return found


def test_sets_are_listed(kept: list[ImageSet], capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = vitnas_says(capsys, "data", "list", code=0)
    head, first, second, total = out.splitlines()
    assert head.split() == ["set", "images", "pixels", "size", "last", "used", "from"]
    assert first.split()[:5] == [kept[0].folder.name, "3", "4", "x", "6"]
    assert first.endswith("data0")
    assert second.endswith("data1")
    assert total.startswith(f"{kept[0].folder.parent}: 2 sets, ")
    out, _ = vitnas_says(capsys, "data", "list", "--json", code=0)
    sets = json.loads(out)["sets"]
    assert [(found["set"], found["number"]) for found in sets] == [
        (kept[0].folder.name, 3),
        (kept[1].folder.name, 4),
    ]


def test_without_a_size_all_go(kept: list[ImageSet], capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = vitnas_says(capsys, "data", "prune", code=0)
    assert out.startswith("2 sets deleted, ")
    out, _ = vitnas_says(capsys, "data", "list", code=0)
    assert out == f"{kept[0].folder.parent}: 0 sets, 0 kB\n"


def test_those_used_last_stay_up_to_a_size(
    kept: list[ImageSet], capsys: pytest.CaptureFixture[str]
) -> None:
    size = sum(path.stat().st_size for path in kept[0].folder.iterdir())
    out, _ = vitnas_says(capsys, "data", "prune", "--keep", f"{size}", code=0)
    assert out.startswith("1 set deleted, ")
    assert kept[0].folder.exists()
    assert not kept[1].folder.exists()


def test_a_set_in_use_stays(kept: list[ImageSet], capsys: pytest.CaptureFixture[str]) -> None:
    descriptor = kept[1].hold()
    out, _ = vitnas_says(capsys, "data", "prune", code=0)
    os.close(descriptor)
    assert out.splitlines()[0] == f"{kept[1].folder}: is in use and stays"
    assert kept[1].place(0).with_suffix(".npy").exists()


def test_a_size_that_is_none_is_refused(
    kept: list[ImageSet], capsys: pytest.CaptureFixture[str]
) -> None:
    line = complaint(capsys, "data", "prune", "--keep", "some")
    assert line == "--keep = 'some': a size is written like 500MB or 1.5GB"


def test_a_folder_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "here")
    assert complaint(capsys, "data", "list").startswith("$VITNAS_IMAGE_CACHE = 'here': must be")
    (tmp_path / "file").touch()
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", str(tmp_path / "file"))
    assert "cannot be read" in complaint(capsys, "data", "list")


def test_it_needs_no_torch() -> None:
    code = "import sys; from vitnas.cli import main\ntry: main(['data', 'list'])\nfinally: "
    code += "assert not {'torch', 'ray'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
