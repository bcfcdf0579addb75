"""A real tune of a small space, stopped and resumed; nothing is trained twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.trees import TREE
from tests.engine.conftest import make_space
from vitnas.data.telling import Teller
from vitnas.engine.batch.book import read_entries
from vitnas.engine.tuning.options import TuneOptions
from vitnas.engine.tuning.result import BOOK_FILE, RECIPE_FILE, RESULT_FILE
from vitnas.engine.tuning.run import run_tune
from vitnas.errors import RunError

SERIAL: dict[str, Any] = {"backend": "serial", "gpus_per_trial": 0.0}
QUICK = {"epochs": 3, "batch_size": 64, "train_fraction": 0.1}
SMALL: dict[str, Any] = {"trials": 3, "networks": 2, "epochs": 2, **SERIAL}


@pytest.mark.slow
def test_a_small_tune_and_its_resumption(tmp_path: Path) -> None:
    space, out, lines = make_space(proxy=QUICK), tmp_path / "tune", list[str]()
    doing = list[str]()
    found = run_tune(space, out, TuneOptions(**SMALL), Teller(lines.append, doing.append))
    began = [line.partition(",")[0] for line in doing if line.startswith("tuning")]
    assert began[0] == "tuning the recipe: 0 of at most 22 trainings"
    assert began[-1] in {f"tuning the recipe: {n} of at most 22 trainings" for n in (12, 18, 22)}
    assert list(found.epochs) == [1, 4]
    assert found.epochs[4].points > found.epochs[1].points
    assert found.text().splitlines()[-1].endswith("  4 epochs, 2 times the cost")
    assert {one.number for one in found.tried} == {0, 1, 2}
    assert found.own.epochs == found.proxy.epochs == 2
    assert len([line for line in lines if line.startswith("recipe ")]) == 3
    assert {path.name for path in out.iterdir()} >= {BOOK_FILE, RECIPE_FILE, RESULT_FILE}
    before = read_entries(out / BOOK_FILE)
    assert run_tune(space, out, TuneOptions(**SMALL)) == found
    assert read_entries(out / BOOK_FILE) == before
    kept = (out / RECIPE_FILE).read_bytes()
    other = make_space(proxy=QUICK, name="other")
    with pytest.raises(RunError, match="tune: holds the recipe of space tiny; give a new folder"):
        run_tune(other, out, TuneOptions(**SMALL))
    same = make_space(proxy=QUICK, data={"name": "digits", "split_seed": 7})
    with pytest.raises(RunError, match="tune: holds the recipe for other images; give a new"):
        run_tune(same, out, TuneOptions(**SMALL))
    assert (out / RECIPE_FILE).read_bytes() == kept
    more = run_tune(space, out, TuneOptions(**{**SMALL, "trials": 4}))
    after = read_entries(out / BOOK_FILE)
    assert after[: len(before)] == before
    assert len(more.tried) == 4


@pytest.mark.slow
def test_a_time_that_is_up_at_once(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"--minutes 0: over before the first recipes"):
        run_tune(make_space(), tmp_path, TuneOptions(minutes=0, **SMALL))


def test_a_run_that_is_not_there_is_told_before_anything_starts(tmp_path: Path) -> None:
    told: list[str] = []
    options = TuneOptions(front_of=str(tmp_path / "gone"), **SMALL)
    with pytest.raises(RunError, match="gone: no such folder"):
        run_tune(make_space(), tmp_path / "tune", options, Teller(told.append, told.append))
    assert told == []
    assert not (tmp_path / "tune").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match=r"holds 'thesis.txt' and no tune.jsonl"):
        run_tune(make_space(), tmp_path, TuneOptions(**SMALL))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_trainings_that_all_fail_are_one_line(tmp_path: Path) -> None:
    """A network of 10^12 parameters runs out of memory before it is built."""
    space = make_space()
    huge = {**space.config.model, "groups": "[1]"}
    huge["stages"] = [{**TREE["model"]["stages"][0], "embed_dim": 1 << 19, "mlp_ratio": 4.0}]
    with pytest.raises(
        RunError, match=r"none of \d+ trainings ended well, with 3 recipes; .*Memory"
    ):
        run_tune(make_space(model=huge), tmp_path, TuneOptions(**SMALL))


@pytest.mark.slow
def test_ray_finds_the_same(shared_ray: Any, tmp_path: Path) -> None:
    serial = run_tune(make_space(proxy=QUICK), tmp_path / "serial", TuneOptions(**SMALL))
    options = TuneOptions(**{**SMALL, "backend": "tune", "workers": 2})
    found = run_tune(make_space(proxy=QUICK), tmp_path / "ray", options)
    assert [(one.proxy, one.gains) for one in found.tried] == [
        (one.proxy, one.gains) for one in serial.tried
    ]
    assert found.gain == serial.gain
