"""Every tracker gets every epoch once, also where the training was killed in between."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.training.test_events import scalars
from vitnas.config.recipe import Recipe
from vitnas.errors import ConfigError, RunError
from vitnas.training import tracking
from vitnas.training.plan import Plan, make_plan
from vitnas.training.tracking import Tracked, numbers, parse_trackers
from vitnas.training.train import train_network


def plan(model_file: Path, epochs: int) -> Plan:
    recipe = Recipe(epochs=epochs, train_fraction=0.1, batch_size=64)
    return make_plan(model_file, recipe=recipe, seed=3)


class Killed(Exception):
    pass


def killed_after(number: int) -> Any:
    def listen(entry: dict[str, Any]) -> None:
        if entry["epoch"] == number:
            raise Killed

    return listen


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def train_with_a_kill(model_file: Path, to: Path, *track: str, epochs: int = 3) -> Path:
    """A training that is killed after its second epoch and resumed."""
    wanted = plan(model_file, epochs)
    with pytest.raises(Killed):
        train_network(wanted, to, device="cpu", listener=killed_after(2), track=track)
    return train_network(wanted, to, device="cpu", track=track)


def test_a_table_and_curves_have_every_epoch_once(model_file: Path, tmp_path: Path) -> None:
    folder = train_with_a_kill(model_file, tmp_path / "out", "csv", "tensorboard")
    log, place = log_of(folder), tmp_path / "out.tracking"
    head, *rows = (place / "log.csv").read_text().splitlines()
    assert head.startswith("epoch,loss,top1,lr,seconds,residual_scales/")
    assert [row.split(",")[:3] for row in rows] == [
        [str(entry["epoch"]), str(entry["loss"]), str(entry["top1"])] for entry in log
    ]
    found = scalars(place / "tensorboard")
    assert [step for step, _ in found["loss"]] == [1, 2, 3]
    assert [value for _, value in found["loss"]] == pytest.approx([e["loss"] for e in log])
    assert set(found) == set(head.split(",")) - {"epoch"}
    assert sorted(path.name for path in place.iterdir()) == ["log.csv", "tensorboard"]


def test_a_new_training_begins_its_table_anew(model_file: Path, tmp_path: Path) -> None:
    place = tmp_path / "out.tracking"
    for epochs in (2, 1):
        train_network(plan(model_file, epochs), tmp_path / "out", device="cpu", track=["csv"])
        assert len((place / "log.csv").read_text().splitlines()) == 1 + epochs
        for file in (tmp_path / "out").iterdir():
            file.unlink()


def test_a_tracker_that_comes_later_gets_the_epochs_before(
    model_file: Path, tmp_path: Path
) -> None:
    wanted = plan(model_file, 2)
    with pytest.raises(Killed):
        train_network(wanted, tmp_path / "out", device="cpu", listener=killed_after(1))
    train_network(wanted, tmp_path / "out", device="cpu", track=["csv"])
    table = (tmp_path / "out.tracking" / "log.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in table] == ["epoch", "1", "2"]


def test_numbers_of_an_entry() -> None:
    entry = {"epoch": 1, "epochs": 9, "top1": 50, "residual_scales": {"a.b": 1, "c": 2.5}}
    wanted = {"top1": 50.0, "residual_scales/a.b": 1.0, "residual_scales/c": 2.5}
    assert numbers(entry) == wanted


@pytest.mark.parametrize(
    ("name", "installed", "rule"),
    [
        ("wandbb", True, r"--track = 'wandbb': must be one of csv, .*nearest: wandb"),
        ("mlflow", False, "--track = 'mlflow': needs the package mlflow: pip install mlflow"),
    ],
)
def test_a_mistake_is_one_line_before_the_training(
    monkeypatch: pytest.MonkeyPatch, name: str, installed: bool, rule: str
) -> None:
    monkeypatch.setattr(tracking, "find_spec", lambda _: object() if installed else None)
    with pytest.raises(ConfigError, match=rule):
        parse_trackers(["csv", name])
    assert parse_trackers(["csv", "csv"]) == ("csv",)


def test_a_tracker_that_refuses_is_one_line_and_the_training_resumes(
    model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(tracking.Csv):
        def write(self, epoch: int, values: Any) -> None:
            if epoch == 2:
                raise ConnectionResetError("no way\nthere")
            super().write(epoch, values)

    with monkeypatch.context() as changed:
        changed.setitem(tracking._TRACKERS, "csv", Refusing)
        with pytest.raises(RunError, match=r"^--track csv: no way; the same command resumes"):
            train_network(plan(model_file, 3), tmp_path / "out", device="cpu", track=["csv"])
    train_network(plan(model_file, 3), tmp_path / "out", device="cpu", track=["csv"])
    assert len((tmp_path / "out.tracking" / "log.csv").read_text().splitlines()) == 4


def test_a_tracker_that_is_not_there_leaves_nothing(
    model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(training: Tracked) -> tracking.Tracker:
        raise ConnectionRefusedError("nobody there")

    monkeypatch.setitem(tracking._TRACKERS, "mlflow", refuse)
    with pytest.raises(RunError, match="--track mlflow: nobody there"):
        train_network(plan(model_file, 1), tmp_path / "out", device="cpu", track=["mlflow"])
    assert list(tmp_path.iterdir()) == [model_file]


def test_what_a_tracker_keeps_is_of_its_training(tmp_path: Path) -> None:
    first = Tracked(tmp_path, "a", {}, is_new=True)
    first.keep("wandb", id="x", epochs=1)
    first.keep("mlflow", id="y")
    resumed = Tracked(tmp_path, "a", {}, is_new=False)
    assert resumed.recall("wandb") == {"id": "x", "epochs": 1}
    assert resumed.recall("mlflow") == {"id": "y"}
    assert first.recall("wandb") == {}
    (tmp_path / "runs.json").write_text("{")
    assert resumed.recall("wandb") == {}


@pytest.mark.slow
def test_mlflow_has_one_run_with_every_epoch_once(
    model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    folder = train_with_a_kill(model_file, tmp_path / "out", "mlflow")
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("vitnas").experiment_id])
    assert (run.info.run_name, run.info.status) == ("out", "FINISHED")
    assert run.data.params["recipe.epochs"] == "3"
    history = client.get_metric_history(run.info.run_id, "top1")
    wanted = [(entry["epoch"], entry["top1"]) for entry in log_of(folder)]
    assert [(metric.step, metric.value) for metric in history] == wanted


@pytest.mark.slow
def test_weights_and_biases_continues_its_run_offline(
    model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    train_with_a_kill(model_file, tmp_path / "out", "wandb")
    place = tmp_path / "out.tracking"
    kept = json.loads((place / "runs.json").read_text())["wandb"]
    assert kept["epochs"] == 3
    written = sorted((place / "wandb").glob("offline-run-*"))
    assert len(written) == 2  # one for each session; both are of one run
    assert all(one.name.endswith(kept["id"]) for one in written)
    logged = [step for one in written for step in _steps(one / f"run-{kept['id']}.wandb")]
    assert logged == [1, 2, 3]


def _steps(file: Path) -> list[int]:
    """The steps in an offline file of Weights & Biases, which is a log in LevelDB's format."""
    from wandb.proto import wandb_internal_pb2

    block, head, data, at, record, found = 1 << 15, 7, file.read_bytes(), 7, b"", []
    while at + head <= len(data):
        if (left := block - at % block) < head:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + head : at + head + size]
        at += head + size
        if kind in (1, 4):  # a whole record, or the last part of one
            read = wandb_internal_pb2.Record.FromString(record)
            found += [read.history.step.num] if read.HasField("history") else []
            record = b""
    return found
