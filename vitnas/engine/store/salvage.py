"""Saves what can be read of a damaged study.db: every trial whose description is readable.

SQLite stops at the first damaged page of a table. So rows are read one by one, from a copy; if the
file was cut off, the copy is filled up with zeros. A trial that cannot be read becomes `refused`.
So all other trials keep their numbers, weights and files.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.space_files import SPACE_OF_RUN
from vitnas.engine.store.database import FILE_NAME, ForeignStudy, told_beside, writable
from vitnas.engine.store.folder import check_study, locked
from vitnas.engine.store.stored import stored_run, stored_trial
from vitnas.engine.store.study import RunStore, read_run
from vitnas.errors import RunError, VitnasError
from vitnas.files import read_bytes
from vitnas.records import Outcome

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

_GAP = 2000  # rows in a row that may be missing before a table is taken to have ended
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)  # the second where an error quotes what is damaged
_NO_JSON = (ValueError, TypeError, RecursionError)
_LOST = "could not be read from the damaged study.db"
_ENDED = {Outcome.COMPLETE: "COMPLETE", Outcome.STOPPED: "PRUNED"}


@dataclass(frozen=True)
class Saved:
    """What `salvage` did.

    Attributes:
        saved: trials and other candidates that are in the new study.db.
        unfinished: of these, to be trained again.
        lost: candidates that could not be read.
        damaged: where the damaged file is now.
    """

    saved: int
    unfinished: int
    lost: int
    damaged: Path


def salvage(path: str | Path) -> Saved:
    """Replace a damaged study.db by one with everything that can be read of it.

    The damaged file is kept beside it. Afterwards the search's own command resumes the run.

    Raises:
        RunError: there is no study, a driver is writing to it, nothing in it can be read, or it is
            not damaged.
    """
    path = Path(path)
    check_study(path)
    with writable(path), locked(path):
        if _is_sound(path):
            raise RunError(f"{path / FILE_NAME}: is not damaged; nothing was changed")
        with tempfile.TemporaryDirectory(dir=path, prefix=".salvage") as folder:
            trials = _save(path, Path(folder))
            damaged = _put_aside(path)
            (Path(folder) / FILE_NAME).replace(path / FILE_NAME)
    known = [trial for trial in trials if "network" in trial.attrs]
    unfinished = sum(trial.outcome is Outcome.RUNNING for trial in known)
    return Saved(len(known), unfinished, len(trials) - len(known), damaged)


def _save(path: Path, folder: Path) -> list[_Rows]:
    """Write a new study.db into `folder` with what can be read of the one in `path`."""
    attrs, trials = _read(path, folder / "copy.db")
    fixed = _fixed(path, attrs)
    if not any("network" in trial.attrs for trial in trials) or fixed is None:
        raise RunError(f"{path / FILE_NAME}: no trial in it can be read{told_beside(path)}")
    store = RunStore(folder, fixed)
    try:
        for name in attrs.keys() - fixed.keys() - {"format"}:
            store.set(name, attrs[name])
        for trial in trials:
            _restore(store, trial)
    finally:
        store.close()
    return trials


def _restore(store: RunStore, trial: _Rows) -> None:
    try:
        store.restore(trial.frozen())
    except ValueError:  # Optuna's own columns contradict each other
        trial.attrs, trial.params = {}, {}
        store.restore(trial.frozen())


@dataclass
class _Rows:
    """What could be read of one trial."""

    attrs: dict[str, Any]
    params: dict[str, tuple[Any, BaseDistribution]]
    started: datetime | None = None
    ended: datetime | None = None

    @property
    def outcome(self) -> Outcome:
        """Refused where nothing is known, running where the result is lost: it is made again."""
        if "network" not in self.attrs:
            return Outcome.REFUSED
        return Outcome(self.attrs.get("result", {}).get("outcome", "running"))

    def frozen(self) -> FrozenTrial:
        """The trial as Optuna stores it."""
        import optuna

        outcome, states = self.outcome, optuna.trial.TrialState
        if "network" not in self.attrs:
            self.attrs = {"result": {"outcome": "refused", "values": None, "error": _LOST}}
        running = outcome is Outcome.RUNNING
        values = self.attrs.get("result", {}).get("values")
        state = states.RUNNING if running else states[_ENDED.get(outcome, "FAIL")]
        return optuna.trial.FrozenTrial(
            number=-1,
            trial_id=-1,
            state=states.COMPLETE if values else state,
            value=None,
            values=values,
            datetime_start=self.started or datetime.now(),
            datetime_complete=None if running else self.ended or datetime.now(),
            params={name: value for name, (value, _) in self.params.items()},
            distributions={name: kind for name, (_, kind) in self.params.items()},
            user_attrs=self.attrs,
            system_attrs={},
            intermediate_values={},
        )


def _is_sound(path: Path) -> bool:
    """Whether the database is whole and a run can be read from it.

    Read only: closing a database that is open for writing moves its log into it.

    Raises:
        RunError: it is locked, or whole and not a study that this version reads.
    """
    address = f"{(path / FILE_NAME).resolve().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        try:
            if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return False
        except _DAMAGED as error:
            if "locked" in str(error):
                raise RunError(f"{path / FILE_NAME}: is locked by another program") from None
            return False
    try:
        read_run(path)
    except ForeignStudy:
        raise
    except VitnasError:
        return False
    return True


def _read(path: Path, copy: Path) -> tuple[dict[str, Any], list[_Rows]]:
    """The study's attributes and its trials by number, as far as they can be read."""
    shutil.copyfile(path / FILE_NAME, copy)
    wal = path / f"{FILE_NAME}-wal"
    if wal.is_file():
        shutil.copyfile(wal, copy.with_name(f"{copy.name}-wal"))
    _fill_up(copy)
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        with contextlib.suppress(*_DAMAGED):  # else one damaged table hides all others
            connection.execute("PRAGMA writable_schema = ON")
        attrs = {}
        for row in _rows(connection, "study_user_attributes", "study_user_attribute_id"):
            value = _json(row["value_json"])
            if value is not None and _is_typed(path, row["key"], value):
                attrs[row["key"]] = value
        trials: dict[int, _Rows] = {}
        for row in _rows(connection, "trials", "trial_id"):
            trial = trials.setdefault(row["trial_id"], _Rows({}, {}))
            trial.started = _moment(row["datetime_start"])
            trial.ended = _moment(row["datetime_complete"])
        for row in _rows(connection, "trial_user_attributes", "trial_user_attribute_id"):
            value = _json(row["value_json"])
            if value is not None:
                trials.setdefault(row["trial_id"], _Rows({}, {})).attrs[row["key"]] = value
        for row in _rows(connection, "trial_params", "param_id"):
            if row["trial_id"] in trials and (asked := _asked(row)) is not None:
                trials[row["trial_id"]].params[row["param_name"]] = asked
    found = [trials.get(number, _Rows({}, {})) for number in range(1, _last(trials) + 1)]
    for index, trial in enumerate(found):
        trial.attrs = _typed(path, index, trial.attrs)
    return attrs, found


def _last(ids: Iterable[Any]) -> int:
    """The last trial's id. Optuna counts them from 1; one far off is a damaged row's."""
    last = 0
    for number in sorted(number for number in ids if isinstance(number, int) and number > 0):
        if number > last + _GAP:
            break
        last = number
    return last


def _is_typed(path: Path, name: str, value: Any) -> bool:
    """Whether an attribute of the study is of its type.

    Raises:
        RunError: it says that another version wrote the study.
    """
    try:
        stored_run(path, {name: value})
    except ForeignStudy:
        raise
    except RunError:
        return False
    return True


def _typed(path: Path, index: int, attrs: dict[str, Any]) -> dict[str, Any]:
    """What is of its type: all, or the network alone, to be trained again, or nothing."""
    network = {name: attrs[name] for name in attrs.keys() & {"network"}}
    for kept in (attrs, network):
        with contextlib.suppress(RunError):
            stored_trial(path, index, kept)
            return kept
    return {}


def _asked(row: Mapping[str, Any]) -> tuple[Any, BaseDistribution] | None:
    """The value of a parameter and what it was drawn from; None where one cannot be read."""
    from optuna.distributions import json_to_distribution

    try:
        kind = json_to_distribution(row["distribution_json"])
        return kind.to_external_repr(row["param_value"]), kind
    except (ValueError, LookupError, TypeError):
        return None


def _fill_up(file: Path) -> None:
    """Extend a cut-off file to the length in its header; else SQLite refuses to read it."""
    with file.open("r+b") as stream:
        head = stream.read(32)
        size = int.from_bytes(head[16:18], "big") or 4096
        pages = int.from_bytes(head[28:32], "big")
        if head.startswith(b"SQLite format 3") and pages * size < 1 << 32:
            stream.truncate(max(file.stat().st_size, pages * (65536 if size == 1 else size)))


def _rows(connection: sqlite3.Connection, table: str, key: str) -> Iterator[Mapping[str, Any]]:
    """The readable rows of a table, one by one."""
    connection.row_factory = sqlite3.Row
    number, missing = 0, 0
    while missing < _GAP:
        number += 1
        missing += 1
        with contextlib.suppress(*_DAMAGED):
            row = connection.execute(f"SELECT * FROM {table} WHERE {key} = ?", (number,)).fetchone()
            if row is not None:
                missing = 0
                yield dict(row)


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except _NO_JSON:
        return None


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _fixed(path: Path, attrs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Space and seed of the run, from the study or from the files beside it."""
    from vitnas.config.space import load_space

    found = {name: attrs[name] for name in ("space", "seed") if name in attrs}
    with contextlib.suppress(VitnasError, OSError, *_NO_JSON, KeyError):
        if "space" not in found and (path / SPACE_OF_RUN).is_file():
            found["space"] = load_space(path / SPACE_OF_RUN).to_tree()
        if "seed" not in found:
            found["seed"] = json.loads(read_bytes(path / "environment.json", 1 << 24))["seed"]
    return found if len(found) == 2 else None


def _put_aside(path: Path) -> Path:
    """Rename the damaged file and what belongs to it; nothing is overwritten."""
    number = 0
    while (damaged := path / f"{FILE_NAME}.damaged{number or ''}").exists():
        number += 1
    (path / FILE_NAME).replace(damaged)
    for end in ("-wal", "-shm"):
        beside = path / f"{FILE_NAME}{end}"
        if beside.exists():
            beside.replace(path / f"{damaged.name}{end}")
    return damaged
