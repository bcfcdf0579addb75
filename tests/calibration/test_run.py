"""A real, tiny calibration; what resumes it and what refuses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.conftest import make_space
from vitnas.calibration.options import CalibrationOptions
from vitnas.calibration.run import BOOK_FILE, PLAN_FILE, run_calibration
from vitnas.config.space import SearchSpace
from vitnas.errors import ConfigError, RunError

OPTIONS = CalibrationOptions(networks=4, long_epochs=3, backend="serial")


def space(**changes: object) -> SearchSpace:
    proxy = {"epochs": 2, "batch_size": 64, "train_fraction": 0.1}
    return make_space(**({"proxy": proxy} | changes))


class Interrupted(Exception):
    """Stands for Ctrl-C."""


@pytest.mark.slow
def test_a_calibration_resumes_and_ends_in_its_files(tmp_path: Path) -> None:
    heard: list[str] = []

    def stop(line: str) -> None:
        heard.append(line)
        if line.startswith("[7/"):
            raise Interrupted

    with pytest.raises(Interrupted):
        run_calibration(space(), tmp_path / "c", OPTIONS, stop)
    assert any("36 trainings of 4 networks on 1 worker" in line for line in heard)
    assert not (tmp_path / "c" / "calibration.json").exists()
    heard.clear()
    found = run_calibration(space(), tmp_path / "c", OPTIONS, heard.append)
    assert any("29 trainings of 4 networks on 1 worker; 7 are kept" in line for line in heard)
    assert len((tmp_path / "c" / BOOK_FILE).read_text().splitlines()) == 36
    assert {one.kind for one in found.proxies} == {
        "size",
        "score",
        "first epoch",
        "cut",
        "training",
        "likelihood",
    }
    assert all(one.cost > 0 for one in found.proxies if one.kind != "size")
    for name in ("images of 4 px", "half of the width", "half of the classes"):
        assert found.figures(name).missing == 0
    again = run_calibration(space(), tmp_path / "c", OPTIONS, heard.append)
    assert again.proxies == found.proxies
    names = {path.name for path in (tmp_path / "c").iterdir() if not path.name.startswith(".")}
    pages = {"calibration.json", "calibration.md", "calibration.png"}
    assert names == {PLAN_FILE, BOOK_FILE, *pages}


def test_the_folder_of_another_space_is_refused(tmp_path: Path) -> None:
    tree = space().to_tree()
    (tmp_path / PLAN_FILE).write_text(json.dumps({"space": tree | {"name": "other"}}))
    with pytest.raises(RunError, match="holds a calibration of space other; give a new folder"):
        run_calibration(space(), tmp_path, OPTIONS)
    (tmp_path / PLAN_FILE).write_text(json.dumps({"space": tree}))
    other = space(proxy={"epochs": 2, "lr": 0.5})
    with pytest.raises(RunError, match="calibration of another version of space tiny"):
        run_calibration(other, tmp_path, OPTIONS)
    for text in ("[]", "[" * 100_000):
        (tmp_path / PLAN_FILE).write_text(text)
        with pytest.raises(RunError, match="is not the plan of a calibration"):
            run_calibration(space(), tmp_path, OPTIONS)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunError, match=r"holds 'thesis.tex' and no plan.json, so it is of"):
        run_calibration(space(), tmp_path, OPTIONS)


def test_nothing_is_written_where_the_space_is_too_small(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--networks = 5000: tiny has \d+ networks"):
        run_calibration(
            space(), tmp_path / "c", CalibrationOptions(networks=5000, backend="serial")
        )
    assert not (tmp_path / "c").exists()
