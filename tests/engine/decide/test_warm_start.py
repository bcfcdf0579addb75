"""Searches that start from something: models first, results of other runs taken over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml

from tests.config.trees import TREE
from tests.engine.conftest import make_space, train
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.replicates import Replication
from vitnas.engine.decide.rules import Rules
from vitnas.engine.decide.warm_start import check_same_images, known_trials, seed_candidates
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.store.study import RunStore, read_run
from vitnas.engine.store.weights import KeptWeights
from vitnas.engine.watch.status import read_status
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import RunError
from vitnas.records import Outcome
from vitnas.run import Run
from vitnas.sessions import Data

Make = Callable[..., Controller]
SERIAL = SearchOptions(
    trials=2, gpus_per_trial=0.0, backend="serial", sampler="random", baselines=False
)


def write_model(path: Path, **changes: Any) -> str:
    stage = {"token_mixer": "mhsa", "embed_dim": 32, "head_dim": 16, "mlp_ratio": 2.0, **changes}
    tree = TREE["model"] | {"groups": "[1]", "stages": [stage]}
    path.write_text(yaml.safe_dump(tree))
    return str(path)


def finished(folder: Path, space: Any = None, num_trials: int = 12, **options: Any) -> Run:
    """A run of made-up trainings."""
    folder.mkdir()
    space = space or make_space()
    store = RunStore(folder, {"space": space.to_tree(), "seed": 7})
    rules = Rules(num_trials, seed=7, sampler="random", **options)
    controller = Controller(store, space, rules)
    while (job := controller.next()) is not None:
        train(controller, job)
    store.close()
    return read_run(folder)


def test_first_comes_what_was_asked_for(controller_of: Make, tmp_path: Path) -> None:
    files = [write_model(tmp_path / f"{depth}.yaml", depth=depth) for depth in (3, 2)]
    found, _ = seed_candidates(make_space(), files)
    (tmp_path / "run").mkdir()

    def session(num_trials: int) -> Controller:
        controller = controller_of(num_trials=num_trials, first=found)
        while (job := controller.next()) is not None:
            train(controller, job)
        controller.store.close()
        return controller

    controller = session(3)
    assert [trial.key for trial in controller.trials[:2]] == [c.key for c in found]
    assert [trial.origin for trial in controller.trials[:3]] == [*files, ""]
    assert dict(controller.trials[0].params) == dict(found[0].params)
    again = session(5)
    assert [trial.origin for trial in again.trials if trial.origin] == files
    assert read_run(tmp_path).trials[0].origin == files[0]


@pytest.mark.slow
def test_results_of_another_run_are_taken_over_once(controller_of: Make, tmp_path: Path) -> None:
    other = finished(tmp_path / "other")
    known = known_trials(make_space(), other)
    assert len(known) == 12
    controller = controller_of(num_trials=5)
    assert [controller.take(*pair) for pair in known] == list(range(12))
    assert controller.num_ended == 0
    assert controller.take(*known[0]) == 0
    assert len(controller.trials) == 12
    while (job := controller.next()) is not None:
        assert job.config.key not in {trial.key for trial in other.complete}
        train(controller, job)
    controller.store.close()
    run = read_run(tmp_path)
    taken = [trial for trial in run.trials if trial.taken]
    assert len(run.complete) == 17
    assert [t.curve for t in taken] == [t.curve for t in other.complete]
    assert [t.seed for t in taken] == [t.seed for t in other.complete]
    assert taken[3].origin == f"{other.path}, trial {other.complete[3].number}"
    resumed = controller_of(num_trials=5)
    assert resumed.done
    assert [resumed.take(*pair) for pair in known] == list(range(12))
    assert len(resumed.trials) == len(run.trials)


@pytest.mark.slow
def test_only_networks_of_the_space_are_taken_over(tmp_path: Path) -> None:
    other = finished(tmp_path / "other", num_trials=30)
    model = dict(make_space().config.model)
    model["stages"] = [dict(model["stages"][0], depth={"int": [1, 2]}, embed_dim=32)]
    smaller = make_space(model=model, limits={"flops": {"max": 3.0e5}})
    found = known_trials(smaller, other)
    assert found
    assert len(found) < 30
    for candidate, trial, _ in found:
        assert candidate.key == trial.key
        assert trial.config["stages"][0].get("depth", 1) <= 2
        assert trial.flops <= 3.0e5


def test_stopped_trials_count_where_stopping_is_allowed(
    controller_of: Make, tmp_path: Path
) -> None:
    other = finished(tmp_path / "other", num_trials=2)
    censored = replace(other.trials[0], outcome=Outcome.STOPPED, curve=(50.0,))
    run = replace(other, trials=(censored, *other.trials[1:]))
    assert len(known_trials(make_space(), run, stopped=False)) == 1
    known = known_trials(make_space(), run)
    controller = controller_of()
    for pair in known:
        controller.take(*pair)
    controller.store.close()
    stored = read_run(tmp_path).trials[0]
    assert (stored.outcome, stored.curve) == (Outcome.STOPPED, (50.0,))


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 1])
def test_replicates_come_along(controller_of: Make, tmp_path: Path, more: int) -> None:
    """The top-1 of one training, of the best of many, is too good to be taken at its word."""
    other = finished(tmp_path / "other", num_trials=6, replication=Replication(2, 400))
    assert other.replicates
    controller = controller_of(num_trials=0, seed=7, replication=Replication(2 + more, 400))
    for known in known_trials(make_space(), other):
        controller.take(*known)
    while (job := controller.next()) is not None:
        train(controller, job)
    controller.store.close()
    run = read_run(tmp_path)
    theirs = {t.key: Counter(t.trainings) for t in other.complete}
    assert all(Counter(t.trainings) >= theirs[t.key] for t in run.complete)
    made = [t for t in run.replicates if not t.taken]
    assert bool(made) is bool(more)
    assert read_status(tmp_path).num_replicates == len(made)
    assert Counter(t.replicate_of for t in made) <= Counter(t.number for t in run.trials)
    seeds = [t.seed for t in (*run.trials, *run.replicates)]
    assert len(seeds) == len(set(seeds))


def test_a_replicate_beside_one_that_was_never_ended_is_not_made_again(
    controller_of: Make, tmp_path: Path
) -> None:
    """Of two workers of a killed run, the second one had ended its replicate; same seed here."""
    other = finished(tmp_path / "other", num_trials=1, replication=Replication(2, 400))
    first, second = other.replicates
    unfinished = replace(first, outcome=Outcome.RUNNING, curve=())
    other = replace(other, replicates=(unfinished, second))
    controller = controller_of(num_trials=0, seed=7, replication=Replication(2, 400))
    (known,) = known_trials(make_space(), other)
    controller.take(*known)
    job = controller.next()
    assert job is not None
    assert job.seed not in {second.seed, other.trials[0].seed}


def test_a_replicate_that_failed_elsewhere_is_not_made_again(
    controller_of: Make, tmp_path: Path
) -> None:
    other = finished(tmp_path / "other", num_trials=1, replication=Replication(1, 400))
    (again,) = other.replicates
    other = replace(other, replicates=(replace(again, outcome=Outcome.DIVERGED, curve=()),))
    controller = controller_of(num_trials=0, replication=Replication(1, 400))
    (known,) = known_trials(make_space(), other)
    controller.take(*known)
    assert controller.next() is None
    controller.store.close()
    (taken,) = read_run(tmp_path).replicates
    assert (taken.outcome, taken.taken) == (Outcome.DIVERGED, True)


@pytest.mark.slow
def test_accuracies_of_another_proxy_are_refused(tmp_path: Path) -> None:
    other = finished(tmp_path / "other", num_trials=1)
    longer = make_space(proxy={"epochs": 5, "batch_size": 64, "train_fraction": 0.3})
    message = r"--start-from .*other: its accuracies cannot be compared: proxy\.epochs: 3 -> 5; "
    with pytest.raises(RunError, match=message):
        known_trials(longer, other)


@pytest.mark.slow
def test_accuracies_on_other_images_are_refused(searched: Run, tmp_path: Path) -> None:
    """Another folder of images may have the same name, classes and split."""
    copytree(searched.path, tmp_path / "other")
    store = RunStore(tmp_path / "other", {"space": make_space().to_tree(), "seed": 1})
    environment = store.attrs["environment"]
    environment["data"]["fingerprint"] = environment["data"]["fingerprint"] | {"files": "others"}
    store.set("environment", environment)
    store.close()
    options = replace(SERIAL, start_from=[tmp_path / "other"])
    message = r"--start-from .*other: its accuracies cannot be compared: it was trained on other im"
    with pytest.raises(RunError, match=message):
        run_search(make_space(), tmp_path / "b", options)
    assert not (tmp_path / "b").exists()


def test_images_that_are_not_told_are_no_others() -> None:
    told, same = Data.model_validate({"fingerprint": {"files": "a"}}), Data()
    for one, other in ((told, told), (told, same), (same, told), (same, same)):
        check_same_images(Path("results/a"), one, other)
    more = Data.model_validate({"fingerprint": {"files": "a", "scoring": "b"}})
    check_same_images(Path("results/a"), told, more)  # an older vitnas told less
    with pytest.raises(RunError, match=r"other images: files: 'a' -> 'b'; --seed-configs results"):
        check_same_images(
            Path("results/a"), told, Data.model_validate({"fingerprint": {"files": "b"}})
        )


def test_accuracies_in_int8_are_others(tmp_path: Path) -> None:
    other = finished(tmp_path / "other", num_trials=1)
    costs = {"num_params": "minimize", "latency_ms": "minimize"}
    assert known_trials(make_space(objectives={"top1": "maximize", **costs}), other)
    message = r"its accuracies cannot be compared: objectives\.top1: 'maximize' -> null"
    with pytest.raises(RunError, match=message):
        known_trials(make_space(objectives={"top1_int8": "maximize", **costs}), other)


@pytest.mark.slow
def test_a_real_search_starts_from_another(searched: Run, tmp_path: Path) -> None:
    file = write_model(tmp_path / "mine.yaml", depth=3)
    said: list[str] = []
    options = replace(SERIAL, seed=2, start_from=[searched.path], seed_configs=[file, "zoo"])
    run = run_search(make_space(), tmp_path / "b", options, Watcher(notice=said.append))
    assert [t.origin for t in run.trials if t.origin and not t.taken] == [file]
    assert sum(trial.is_ended_here for trial in run.trials) == 2
    assert len(run.complete) == 5
    assert all(trial.test_top1 is not None for trial in run.front)
    kept = {int(path.stem) for path in (run.path / "weights").iterdir()}
    assert kept >= {trial.number for trial in run.front}
    assert re.match(r"--seed-configs: \d+ networks do not fit; ", said[0])
    assert said[1] == "--start-from: 3 results taken over"
    from vitnas.report.facts import facts

    told = dict(facts(run))
    assert told["Taken over from"] == f"{searched.path} (3 trials)"
    assert told["Trained first"] == file


@pytest.mark.slow
def test_replicates_come_with_their_weights(tmp_path: Path) -> None:
    """So every training of a front member is scored on the test images, wherever it was made."""
    options = replace(SERIAL, replicates=1)
    first = run_search(make_space(), tmp_path / "a", options)
    again = replace(options, start_from=[first.path], trials=1, seed=2)
    run = run_search(make_space(), tmp_path / "b", again)
    taken = [trial for trial in run.front if trial.taken and trial.replicates]
    assert taken
    for trial in taken:
        theirs = next(one for one in first.front if one.key == trial.key)
        assert trial.test_trainings == theirs.test_trainings
        assert len(trial.test_trainings) == 2


@pytest.mark.slow
def test_a_driver_killed_while_taking_over_has_all_weights_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(SERIAL, replicates=1)
    first = run_search(make_space(), tmp_path / "a", options)
    again = replace(options, start_from=[first.path], trials=1, seed=2)
    with monkeypatch.context() as patched:
        patched.setattr(KeptWeights, "put", _killed)
        with pytest.raises(SystemExit):
            run_search(make_space(), tmp_path / "b", again)
    (taken,) = read_run(tmp_path / "b").trials
    assert taken.taken
    run = run_search(make_space(), tmp_path / "b", again)
    tested = {one.key: one.test_trainings for one in first.front}
    ours = {one.key: one.test_trainings for one in run.front if one.taken}
    assert ours
    assert ours.items() <= tested.items()


def _killed(*arguments: Any) -> None:
    raise SystemExit
