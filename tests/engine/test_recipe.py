"""A search tunes the recipe first where none is known, once, and a resume uses what it found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_search import SERIAL, folder_space
from tests.training.conftest import fill_folder
from vitnas.config.files import validate
from vitnas.config.space import SearchSpace, load_space
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.book import read_entries
from vitnas.engine.declare import declared
from vitnas.engine.options import SearchOptions
from vitnas.engine.recipe import _LEAST, _MOST, too_short, tune_options, why_untuned
from vitnas.engine.search import run_search
from vitnas.engine.store.study import read_study
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import DataError, RunError
from vitnas.report.facts import facts
from vitnas.run import Run
from vitnas.training.data import load_sizes
from vitnas.training.images import Images


@pytest.mark.parametrize(
    ("given", "trials", "networks", "minutes"),
    [
        ({}, 4, 2, None),  # 24 trials: 12 trainings
        ({"trials": 60}, 5, 2, None),  # 15
        ({"trials": 120}, 8, 3, None),  # 30
        ({"trials": 10_000}, 18, 3, None),  # 60
        ({"hours": 2.0}, 18, 3, 30.0),
        ({"hours": 2.0, "gpu_hours": 1.0, "trials": 24}, 4, 2, 15.0),
    ],
)
def test_its_share_of_the_search(
    given: dict[str, Any], trials: int, networks: int, minutes: float | None
) -> None:
    found = tune_options(SearchOptions(**given))
    assert found is not None
    assert (found.trials, found.networks, found.minutes) == (trials, networks, minutes)


def test_the_help_says_how_many_trainings_it_takes() -> None:
    told = declared(SearchOptions)["tune"].option.help
    assert told.endswith(f"in a quarter as many trainings, {_LEAST} to {_MOST}.")


def test_a_short_search_does_not_tune() -> None:
    assert tune_options(SearchOptions(trials=11)) is None


@pytest.mark.parametrize(
    ("space", "is_asked"),
    [("digits", False), ("fashion_32", False), ("hybrid_cifar", True), ("images_64", True)],
)
def test_on_which_images_a_recipe_is_known(space: str, is_asked: bool, tmp_path: Path) -> None:
    """Nothing was tried on CIFAR; `sret_table7` names its paper's recipe."""
    few = SearchOptions(trials=_LEAST - 1)
    assert (why_untuned(load_space(space), tmp_path, few) is not None) == is_asked
    assert why_untuned(load_space("sret_table7"), tmp_path, few) is None


def test_a_tuning_that_cannot_try_one_recipe_in_its_time_is_left_out() -> None:
    """It had taken 90 s of a search of six minutes, and found nothing."""
    how = tune_options(SearchOptions(hours=0.1, trials=24))
    assert how is not None
    assert too_short(how, 50.0, 2) == (
        "the space's own recipe is used: tuning has 1.5 min, and its first 8 trainings take about "
        "3 min; `vitnas tune` takes its time"
    )
    assert too_short(how, 20.0, 2) is None
    assert too_short(how, None, 2) is None
    by_trials = tune_options(SearchOptions())
    assert by_trials is not None
    assert too_short(by_trials, 1e6, 1) is None


def search(space: SearchSpace, out: Path, said: list[str], **options: Any) -> Run:
    return run_search(space, out, SearchOptions(**SERIAL, **options), Watcher(notice=said.append))


def test_images_that_cannot_be_read_are_all_that_is_said(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    next((tmp_path / "data" / "train").glob("*/*")).write_bytes(b"no image")
    said = list[str]()
    with pytest.raises(DataError, match="not a readable image"):
        search(folder_space(tmp_path / "data"), tmp_path / "run", said, trials=1)
    assert said == []


@pytest.mark.slow
def test_few_trials_say_that_the_space_s_own_is_used(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    space, said = folder_space(tmp_path / "data"), list[str]()
    run = search(space, tmp_path / "run", said, trials=1)
    assert [line for line in said if line.startswith("--trials 1: too few to tune")]
    assert run.environment.tuned is None
    quiet: list[str] = []
    search(space, tmp_path / "other", quiet, trials=1, tune=False)
    assert not [line for line in quiet if "tune" in line]


@pytest.mark.slow
def test_a_search_tunes_first_and_a_resume_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_folder(tmp_path / "data")
    space, out, said = folder_space(tmp_path / "data"), tmp_path / "run", list[str]()
    read: list[Any] = []

    def counted(*asked: Any) -> dict[tuple[int, int], Images]:
        read.append(asked)
        return load_sizes(*asked)

    monkeypatch.setattr("vitnas.training.data.load_sizes", counted)
    run = search(space, out, said, trials=12)
    assert [asked[:3] for asked in read] == [(space.config.data, [(8, 8)], 1.0)]
    assert len([line for line in said if line.startswith("recipe ")]) == 4
    stored = read_study(out)[0]["tuned"]
    assert stored["own"] == space.config.proxy.model_dump(mode="json")
    assert run.space["proxy"] == stored["proxy"]
    assert run.environment.proxy.told() == validate(ProxyConfig, stored["proxy"]).told()
    assert run.environment.tuned == stored["line"]
    assert stored["line"] in said
    assert ("Recipe tuned first", stored["line"]) in facts(run)
    book = read_entries(out / "tune" / "tune.jsonl")
    again: list[str] = []
    longer = search(space, out, again, trials=13)
    assert not [line for line in again if "recipe" in line]
    assert read_entries(out / "tune" / "tune.jsonl") == book
    assert longer.space == run.space
    assert longer.environment.tuned == run.environment.tuned


def test_a_changed_recipe_is_another_run(tmp_path: Path) -> None:
    """What was tuned stands for the recipe that it was tuned from, and for no other."""
    fill_folder(tmp_path / "data")
    space, out = folder_space(tmp_path / "data"), tmp_path / "run"
    store_tuned(space, out)
    assert search(space, out, [], trials=1).space["proxy"]["lr"] == 0.01
    proxy = {"epochs": 1, "batch_size": 8, "lr": 0.5}
    other = SearchSpace(
        space.config.model_copy(update={"proxy": space.config.proxy.model_copy(update=proxy)})
    )
    with pytest.raises(RunError, match=r"is a run of another space: proxy.lr: 0.01 -> 0.5"):
        search(other, out, [], trials=1)


@pytest.mark.slow
def test_who_starts_from_a_tuned_run_uses_its_recipe(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    space, first = folder_space(tmp_path / "data"), tmp_path / "first"
    store_tuned(space, first)
    search(space, first, [], trials=1)
    said: list[str] = []
    run = search(space, tmp_path / "second", said, trials=12, start_from=[first])
    assert run.space["proxy"]["lr"] == 0.01
    assert "--start-from: 1 results taken over" in said
    assert not [line for line in said if "tuning" in line]


def store_tuned(space: SearchSpace, out: Path) -> None:
    """A run without trials whose recipe has been tuned."""
    from vitnas.engine.store.study import RunStore

    own = space.config.proxy
    proxy = own.model_copy(update={"lr": 0.01})
    tuned = {
        "own": own.model_dump(mode="json"),
        "proxy": proxy.model_dump(mode="json"),
        "line": "better",
    }
    tree = {**space.to_tree(), "proxy": proxy.model_dump(mode="json")}
    out.mkdir()
    RunStore(out, {"space": tree, "seed": 0, "tuned": tuned}).close()
