"""Where the log of a long training goes beside log.jsonl, an entry for each epoch."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from vitnas.errors import ConfigError, RunError, VitnasError, nearest_name
from vitnas.files import own_folder, remove_folder, write_text
from vitnas.training.events import Events

Entry = Mapping[str, Any]
_PROJECT = "vitnas"
_RUNS_FILE = "runs.json"


@dataclass(frozen=True)
class Tracked:
    """A training that is tracked.

    Attributes:
        folder: where trackers write what stays on this machine.
        name: how it is called.
        facts: what it depends on, by name.
        is_new: whether it begins, and does not resume.
    """

    folder: Path
    name: str
    facts: Mapping[str, Any]
    is_new: bool

    def recall(self, tracker: str) -> dict[str, Any]:
        """What a tracker kept of this training; empty for a new one."""
        return {} if self.is_new else self._kept().get(tracker, {})

    def keep(self, tracker: str, **values: Any) -> None:
        """Keep what a tracker has to know when the training resumes."""
        write_text(self.folder / _RUNS_FILE, json.dumps({**self._kept(), tracker: values}))

    def _kept(self) -> dict[str, Any]:
        try:
            kept = json.loads((self.folder / _RUNS_FILE).read_text())
        except (OSError, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}


class Tracker(Protocol):
    """Takes an epoch's numbers.

    Attributes:
        known: the last epoch that it has from before.
    """

    known: int

    def write(self, epoch: int, values: Mapping[str, float]) -> None: ...

    def close(self, is_whole: bool) -> None:
        """`is_whole`: whether the training has ended, and not failed or been interrupted."""


class Csv:
    """One table, written anew with each epoch."""

    known = 0

    def __init__(self, training: Tracked) -> None:
        self._path = training.folder / "log.csv"
        self._rows: list[dict[str, float]] = []

    def write(self, epoch: int, values: Mapping[str, float]) -> None:
        self._rows.append({"epoch": epoch, **values})
        text = io.StringIO()
        table = csv.DictWriter(text, self._rows[0], extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(self._rows)
        write_text(self._path, text.getvalue())

    def close(self, is_whole: bool) -> None:
        pass


class TensorBoard:
    """Event files, begun anew when a training resumes: they cannot be read cheaply."""

    known = 0

    def __init__(self, training: Tracked) -> None:
        self._events = Events(training.folder / "tensorboard")
        self._events.forget()

    def write(self, epoch: int, values: Mapping[str, float]) -> None:
        self._events.write(epoch, values)

    def close(self, is_whole: bool) -> None:
        self._events.close()


class Wandb:
    """A run of Weights & Biases; the service and the mode are its own settings (`WANDB_MODE`)."""

    def __init__(self, training: Tracked) -> None:
        import wandb

        kept = training.recall("wandb")
        self.known: int = kept.get("epochs", 0)
        self._training = training
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or _PROJECT,
            dir=os.environ.get("WANDB_DIR") or str(training.folder),
            name=training.name,
            id=kept.get("id"),
            resume="allow",
            config=dict(training.facts),
        )
        training.keep("wandb", id=self._run.id, epochs=self.known)

    def write(self, epoch: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=epoch)
        self._training.keep("wandb", id=self._run.id, epochs=epoch)

    def close(self, is_whole: bool) -> None:
        self._run.finish(exit_code=0 if is_whole else 1)


class MLflow:
    """A run of MLflow; where it is kept is its own setting (`MLFLOW_TRACKING_URI`)."""

    def __init__(self, training: Tracked) -> None:
        from mlflow import MlflowClient

        self._client = MlflowClient()
        self._id: str = training.recall("mlflow").get("id", "")
        if self._id:
            self._client.update_run(self._id, status="RUNNING")
        else:
            self._id = self._begin(training)
            training.keep("mlflow", id=self._id)
        told = self._client.get_metric_history(self._id, "top1")
        self.known: int = max((metric.step for metric in told), default=0)

    def _begin(self, training: Tracked) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or _PROJECT
        found = self._client.get_experiment_by_name(name)
        place = self._client.create_experiment(name) if found is None else found.experiment_id
        run = self._client.create_run(place, run_name=training.name)
        for key, value in training.facts.items():
            self._client.log_param(run.info.run_id, key, value)
        return str(run.info.run_id)

    def write(self, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._client.log_metric(self._id, name, value, step=epoch)

    def close(self, is_whole: bool) -> None:
        self._client.set_terminated(self._id, "FINISHED" if is_whole else "KILLED")


_TRACKERS: dict[str, Callable[[Tracked], Tracker]] = {
    "csv": Csv,
    "tensorboard": TensorBoard,
    "wandb": Wandb,
    "mlflow": MLflow,
}
_PACKAGES = {"tensorboard": "'vitnas[tensorboard]'", "wandb": "wandb", "mlflow": "mlflow"}


def parse_trackers(names: Sequence[str]) -> tuple[str, ...]:
    """The trackers that were asked for, each once, before anything is trained.

    Raises:
        ConfigError: there is no such tracker, or its package is not installed.
    """
    for name in names:
        if name not in _TRACKERS:
            rule = f"must be one of {', '.join(_TRACKERS)}"
            nearest = nearest_name(name, list(_TRACKERS))
            raise ConfigError(rule, address="--track", value=name, nearest=nearest)
        if name in _PACKAGES and find_spec(name) is None:
            rule = f"needs the package {name}: pip install {_PACKAGES[name]}"
            raise ConfigError(rule, address="--track", value=name)
    return tuple(dict.fromkeys(names))


@contextmanager
def tracking(
    names: Sequence[str], training: Tracked, log: Sequence[Entry]
) -> Iterator[Callable[[Entry], None]]:
    """What takes the log's entries to the trackers; each gets every epoch once.

    Args:
        names: of the trackers.
        training: what is tracked.
        log: its epochs so far; a tracker gets those that it does not have.

    Raises:
        RunError: a tracker refuses; the training can resume.
    """
    open_: list[tuple[str, Tracker]] = []

    def take(entry: Entry) -> None:
        for name, tracker in open_:
            with _plainly(name):
                tracker.write(entry["epoch"], numbers(entry))

    is_whole = False
    try:
        for name in names:
            with _plainly(name):
                own_folder(training.folder)
                tracker = _TRACKERS[name](training)
                open_.append((name, tracker))
                for entry in log[tracker.known :]:
                    tracker.write(entry["epoch"], numbers(entry))
        yield take
        is_whole = True
    finally:
        for name, tracker in open_:
            with _plainly(name):
                tracker.close(is_whole)
        remove_folder(training.folder, ())  # if nothing is in it


def numbers(entry: Entry) -> dict[str, float]:
    """An entry's numbers by name, those of a group as `group/name`; its epoch is left out."""
    found: dict[str, float] = {}
    for name, value in entry.items():
        if isinstance(value, Mapping):
            found |= {f"{name}/{part}": float(number) for part, number in value.items()}
        elif name not in ("epoch", "epochs"):
            found[name] = float(value)
    return found


@contextmanager
def _plainly(name: str) -> Iterator[None]:
    """An error of a tracker in one line: each of these packages has its own."""
    try:
        yield
    except VitnasError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        rule = f"--track {name}: {lines[0][:200]}; the same command resumes, also without it"
        raise RunError(rule) from None
