"""What is installed is whole: a wheel holds every file that the code opens, and works by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FORBIDDEN = ("tests/", "benchmarks/", "results/", "space/", "docs/")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, built as pip would for anybody."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("vitnas-*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_there(unpacked: Path, cwd: Path, *arguments: str) -> str:
    """What Python says when the unpacked wheel is the only vitnas that it sees first."""
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = ROOT / "vitnas"
    files = {path for path in package.rglob("*") if path.is_file()}
    files -= {path for path in files if "__pycache__" in path.parts}
    spaces = {
        f"vitnas/spaces/{path.relative_to(ROOT / 'space').as_posix()}"
        for path in (ROOT / "space").rglob("*")
        if path.is_file()
    }
    wanted = {path.relative_to(ROOT).as_posix() for path in files} | spaces
    assert names >= wanted
    assert "vitnas/py.typed" in names
    assert "vitnas/spaces/digits.yaml" in names
    assert {name for name in wanted if name.endswith(".j2")}
    assert not [name for name in names if name.startswith(FORBIDDEN)]


def test_a_wheel_holds_the_licence_and_names_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (licence,) = (name for name in archive.namelist() if name.endswith("licenses/LICENSE"))
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
        head = archive.read(metadata).decode()
    assert "License-Expression: Apache-2.0" in head
    assert "Requires-Python: >=3.10" in head


def test_the_wheel_works_where_no_checkout_is(unpacked: Path, tmp_path: Path) -> None:
    where = run_there(unpacked, tmp_path, "-c", "import vitnas; print(vitnas.__file__)")
    assert Path(where.strip()) == unpacked / "vitnas" / "__init__.py"
    said = run_there(unpacked, tmp_path, "-m", "vitnas", "space", "digits", "--samples", "1")
    assert said.startswith("digits")
    assert "FLOPs" in said


def test_the_wheel_finds_its_templates(unpacked: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from vitnas.run import Run; "
        "from vitnas.sessions import Environment; "
        "from vitnas.report import write_report; "
        "write_report(Run(Path('run'), 'empty', (), {}, Environment(), 0))"
    )
    run_there(unpacked, tmp_path, "-c", code)
    assert (tmp_path / "run" / "report.html").is_file()
