"""Real trainings through both back ends: the same study, scored fronts, resumed runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import SMALL, make_space
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.store.study import read_run
from vitnas.engine.store.weights import near_front
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import ConfigError, DeviceError, RunError
from vitnas.records import Outcome
from vitnas.run import Run


def essence(run: Run) -> list[tuple[object, ...]]:
    return [(t.number, t.outcome, t.key, t.seed, t.curve, t.test_top1) for t in run.trials]


def test_a_real_search_leaves_a_scored_front(searched: Run) -> None:
    assert len(searched.complete) == 3
    for trial in searched.complete:
        assert trial.epochs == 3
        assert trial.top1 is not None
        assert trial.top1 > 20
        assert trial.device == "cpu"
    for trial in searched.front:
        assert trial.test_top1 is not None
        assert (searched.path / "weights" / f"{trial.number}.safetensors").is_file()
    members = {trial.number for trial in searched.front}
    others = [trial for trial in searched.trials if trial.number not in members]
    assert all(trial.test_top1 is None for trial in others)
    images = searched.environment.data.num_val_images or 0
    near = {trial.number for trial in near_front(searched.trials, images, searched.costs)}
    kept = {int(path.stem) for path in (searched.path / "weights").iterdir()}
    assert kept == members | near


def test_the_folder_says_what_the_run_depends_on(searched: Run) -> None:
    assert (searched.path / "space.yaml").is_file()
    assert (searched.path / "environment.json").is_file()
    (session,) = searched.environment.sessions
    assert session.backend == "serial"
    assert session.versions["torch"]
    assert session.hardware.cores
    assert session.sampler == "ehvi"
    assert session.pruner
    assert session.pruner.told() == {"name": "curve", "confidence": 0.98}
    assert searched.environment.seed == 1
    data = searched.environment.data.told()
    assert data["num_train_images"] + data["num_val_images"] + data["num_test_images"] == 1797


@pytest.mark.slow
def test_the_chosen_pruner_decides(tmp_path: Path) -> None:
    """And changes nothing else: with random proposals the curves are the unpruned run's, cut."""
    space = make_space(proxy={"epochs": 4, "batch_size": 64, "train_fraction": 0.1})
    options = replace(SMALL, trials=9, sampler="random", pruner="front")
    run = run_search(space, tmp_path / "run", options)
    assert run.count(Outcome.STOPPED) >= 1
    assert {t.epochs for t in run.trials if t.outcome is Outcome.STOPPED} <= {1, 2}
    assert run.environment.told()["sessions"][0]["pruner"] == {"name": "front", "bins": 1}
    kept = run_search(space, tmp_path / "kept", replace(options, pruner="none"))
    assert len(kept.complete) == 9
    for cut, whole in zip(run.trials, kept.trials, strict=True):
        assert (cut.key, cut.curve) == (whole.key, whole.curve[: cut.epochs])
    assert kept.environment.told()["sessions"][0]["pruner"] == {"name": "none"}


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ({"pruner": "curv"}, r"pruner = 'curv': should be .*\(nearest: curve\)"),
        ({"confidence": 98.0}, r"confidence = 98.0: should be .* \(nearest: 0.999\)"),
        ({"pruner_bins": 0}, r"pruner_bins = 0: should be .* \(nearest: 1\)"),
    ],
)
def test_options_of_pruning_are_checked_at_once(option: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        SearchOptions(**option)


@pytest.mark.slow
def test_tune_with_one_worker_gives_the_same_study(
    searched: Run, tmp_path: Path, shared_ray: Any
) -> None:
    run = run_search(make_space(), tmp_path / "run", replace(SMALL, backend="tune"))
    assert essence(run) == essence(searched)
    assert not (run.path / ".tune").exists()


@pytest.mark.slow
def test_a_run_that_was_cut_off_is_finished(searched: Run, tmp_path: Path) -> None:
    """Stopped in the middle of its second training, it ends with the same networks, each once."""

    class CutOffError(Exception):
        pass

    def cut(event: str, trial: object) -> None:
        if event == "epoch" and getattr(trial, "number", 0) == searched.complete[1].number:
            raise CutOffError

    with pytest.raises(CutOffError):
        run_search(make_space(), tmp_path / "run", SMALL, Watcher(listener=cut))
    assert read_run(tmp_path / "run").count(Outcome.RUNNING) == 1
    run = run_search(make_space(), tmp_path / "run", SMALL)
    assert len(run.complete) == 3
    # The third network may be another one, and so the front and who is scored on the test images.
    assert [row[:-1] for row in essence(run)[:2]] == [row[:-1] for row in essence(searched)[:2]]
    assert len(run.environment.sessions) == 2


@pytest.mark.slow
def test_an_error_in_the_code_fails_the_trial_and_not_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vitnas.training.proxy import ProxyTraining
    from vitnas.training.score import Diverged

    errors: dict[str, Exception] = {
        "failed": ValueError("a bug\nof ours"),
        "diverged": Diverged("x"),
    }
    for outcome, error in errors.items():

        def broken(self: ProxyTraining, error: Exception = error) -> object:
            raise error

        monkeypatch.setattr(ProxyTraining, "__iter__", broken)
        run = run_search(make_space(), tmp_path / outcome, SMALL)
        assert [trial.outcome.value for trial in run.trials] == [outcome] * 3
        assert "\n" not in str(run.trials[0].error)


def test_folders_that_cannot_be_used(searched: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file"):
        run_search(make_space(), tmp_path / "file", SMALL)
    with pytest.raises(RunError, match="is not a writable folder"):
        run_search(make_space(), tmp_path / "file" / "below", SMALL)
    other = make_space(proxy={"epochs": 4})
    with pytest.raises(RunError, match=r"run of another space: .*proxy\.epochs: 3 -> 4"):
        run_search(other, searched.path, SMALL)


def test_a_second_driver_is_refused(searched: Run) -> None:
    from filelock import FileLock

    with FileLock(searched.path / ".lock"), pytest.raises(RunError, match="another search"):
        run_search(make_space(), searched.path, SMALL)


def test_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(DeviceError, match="no CUDA device"):
        run_search(make_space(), tmp_path / "run", SearchOptions(gpus_per_trial=0.5))
    assert not (tmp_path / "run").exists()


def test_nobody_answers_at_the_address(tmp_path: Path) -> None:
    options = SearchOptions(trials=1, gpus_per_trial=0.0, ray_address="127.0.0.1:1")
    with pytest.raises(RunError, match=r"--ray-address 127\.0\.0\.1:1: no Ray cluster answers"):
        run_search(make_space(), tmp_path / "run", options)
