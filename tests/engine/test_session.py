"""What one session writes down, the next one holds on to: images, weights to keep, why it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.engine.conftest import make_space
from tests.engine.test_search import SERIAL, folder_space
from tests.training.conftest import fill_folder
from vitnas.engine import session
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.store.study import RunStore, read_run
from vitnas.engine.store.weights import near_front
from vitnas.errors import RunError


@pytest.mark.slow
def test_a_run_goes_on_only_with_the_images_that_it_began_with(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    space, out = folder_space(tmp_path / "data"), tmp_path / "run"
    run_search(space, out, SearchOptions(trials=1, **SERIAL))
    run_search(space, out, SearchOptions(trials=2, **SERIAL))
    before = read_run(out)
    Image.new("RGB", (8, 8)).save(tmp_path / "data" / "train" / "red" / "new.png")
    message = r"run: the images that train, score or test have changed .*num_images: 15 -> 16; use"
    with pytest.raises(RunError, match=message):
        run_search(space, out, SearchOptions(trials=3, **SERIAL))
    assert read_run(out) == before


@pytest.mark.slow
def test_so_it_is_with_other_images_that_score(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    space, out = folder_space(tmp_path / "data", "val"), tmp_path / "run"
    run_search(space, out, SearchOptions(trials=1, **SERIAL))
    (tmp_path / "data" / "val" / "red" / "0.png").unlink()
    with pytest.raises(
        RunError, match="score or test have changed since this run began: scoring: "
    ):
        run_search(space, out, SearchOptions(trials=2, **SERIAL))


@pytest.mark.slow
def test_so_it_is_with_other_test_images(tmp_path: Path) -> None:
    """Their scores would stand beside those of the earlier ones, of baselines as well."""
    fill_folder(tmp_path / "data")
    space, out = folder_space(tmp_path / "data"), tmp_path / "run"
    run_search(space, out, SearchOptions(trials=1, **SERIAL))
    (tmp_path / "data" / "val" / "red" / "0.png").unlink()
    with pytest.raises(RunError, match="test have changed since this run began: test: "):
        run_search(space, out, SearchOptions(trials=2, **SERIAL))


@pytest.mark.slow
def test_which_weights_a_run_keeps_stays_until_it_is_told_otherwise(tmp_path: Path) -> None:
    """They are kept for a `vitnas export` of any network, which a session more must not undo."""
    space, out = make_space(proxy={"epochs": 1, "train_fraction": 0.1}), tmp_path / "run"
    fixed = {**SERIAL, "sampler": "random", "pruner": "none"}

    def kept(trials: int, **options: Any) -> tuple[int, int]:
        run = run_search(space, out, SearchOptions(trials=trials, **fixed, **options))
        return len(run.complete), len(list((out / "weights").iterdir()))

    assert kept(3, keep_weights="100MB") == (3, 3)
    assert kept(4) == (4, 4)
    assert kept(5) == (5, 5), "the third session knows of the first one's"
    kept(6, keep_weights="1")
    run = read_run(out)
    num_images = run.environment.data.num_val_images or 0
    near = {t.number for t in near_front(run.trials, num_images, run.costs)}
    assert {int(path.stem) for path in (out / "weights").iterdir()} == near
    assert {trial.number for trial in run.front} <= near


def test_a_fact_is_added_to_the_session_that_runs(tmp_path: Path) -> None:
    space = make_space()
    store = RunStore(tmp_path, session.fixed(space, SearchOptions()))
    store.set("environment", {"sessions": [{"workers": 1}, {"workers": 2}]})
    session.note(store, ended_by="the time is up")
    store.close()
    stored = json.loads((tmp_path / "environment.json").read_text())["sessions"]
    assert stored == [{"workers": 1}, {"workers": 2, "ended_by": "the time is up"}]
    assert [one.ended_by for one in read_run(tmp_path).environment.sessions] == [
        None,
        "the time is up",
    ]
