"""study.db: the Optuna study that is the only source of truth of a run; writing and reading it.

Only the driver writes it. It holds everything that a report or a resume needs: the space, the
environment, and for each trial its configuration, cost, curve and outcome. Objectives in Optuna's
order: its accuracy in percent (maximise), then the space's costs in the order of `COSTS`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.costs import costs_of, directions_of, quality_of
from vitnas.config.differences import differences, with_defaults
from vitnas.engine.batch.references import read_baselines
from vitnas.engine.store.database import (
    FILE_NAME,
    ForeignStudy,
    close_database,
    flush,
    make_plain,
    open_database,
    readable,
    writable,
)
from vitnas.engine.store.folder import DRAFT, check_study
from vitnas.engine.store.stored import FORMAT, check_format, records_of, stored_run
from vitnas.errors import RunError
from vitnas.files import remove_folder
from vitnas.records import Outcome, TrialRecord, averaged
from vitnas.run import Run

if TYPE_CHECKING:
    import optuna

__all__ = [
    "FILE_NAME",
    "STUDY_NAME",
    "RunStore",
    "differences",
    "read_run",
    "writable",
]

STUDY_NAME = "vitnas"
_FLUSH_S = 2.0


class RunStore:
    """A run's study, open for writing.

    Optuna's samplers work on a copy in memory, `study`, and never wait for the disk. There,
    replicates are failed trials (see `_as_seen`). A candidate is written to the file in one
    transaction by `begin` or `tell`. From then on every change is written before the call returns.

    Args:
        path: the results folder; it exists.
        fixed: what may not change between sessions of a run: `space` (the canonical tree) and
            `seed`. Written when the study is new, compared when it is not.

    Raises:
        RunError: the study is damaged, of another format, space or seed.
    """

    def __init__(self, path: Path, fixed: Mapping[str, Any]) -> None:
        import optuna

        self.path = path
        space = fixed.get("space")
        costs = costs_of(space)
        names = (quality_of(space), *costs)
        if not (path / FILE_NAME).exists():
            _make(path, fixed, names, costs)
        with readable(path):
            self._file = open_database(path, write=True)
        try:
            with readable(path):
                self._study_id, self._attrs = _begin(self._file, fixed, names, costs)
                stored = self._file.get_all_trials(self._study_id, deepcopy=False)
            refuse_other(path, self._attrs, fixed)
            records_of(path, stored)
            directions = directions_of(costs)
            self.study = optuna.create_study(study_name=STUDY_NAME, directions=directions)
            with readable(path):
                _check_distributions(stored)
                self.study.add_trials(map(_as_seen, stored))
        except BaseException:
            self.close()
            raise
        self._ids = [trial._trial_id for trial in stored]  # in the file, by number
        self._flushed = time.monotonic()

    @property
    def attrs(self) -> dict[str, Any]:
        """What is stored about the whole run."""
        return dict(self._attrs)

    def set(self, name: str, value: Any) -> None:
        self._file.set_study_user_attr(self._study_id, name, value)
        self._attrs[name] = value

    def records(self) -> tuple[TrialRecord, ...]:
        """All candidates as stored."""
        with readable(self.path):
            return records_of(self.path, self._stored())

    @property
    def alone(self) -> frozenset[int]:
        """Candidates that ran out of memory once and are to be trained alone."""
        return frozenset(trial.number for trial in self._stored() if "alone" in trial.user_attrs)

    def ask(self, params: Mapping[str, Any] | None = None) -> optuna.Trial:
        """A new candidate, in memory alone: end it with `tell` or keep it with `begin`, and do so
        before the next one is asked for.

        Args:
            params: what it is to be, by Optuna's names; None = the sampler proposes.
        """
        assert len(self._ids) == len(self._stored()), "the last candidate was not written"
        if params is not None:
            self.study.enqueue_trial(dict(params))
        return self.study.ask()

    def begin(self, number: int) -> None:
        """Write the candidate `number` with all that is known of it: it will be trained."""
        assert number == len(self._ids)
        trial = self._stored()[number]
        self._ids.append(self._file.create_new_trial(self._study_id, trial))

    def describe(self, number: int, name: str, value: Any) -> None:
        """Store `value` under `name` with the running trial `number`."""
        if number < len(self._ids):
            self._file.set_trial_user_attr(self._ids[number], name, value)
        trial_id = self._stored()[number]._trial_id
        self.study._storage.set_trial_user_attr(trial_id, name, value)

    def tell(
        self,
        number: int,
        outcome: Outcome,
        values: tuple[float, ...] | None = None,
        **result: Any,
    ) -> None:
        """End trial `number`: `result` first, then the state, so that no ended trial lacks it."""
        self.describe(number, "result", {"outcome": outcome.value, "values": values, **result})
        self._close_trial(number, outcome, values)
        if outcome.is_trial and time.monotonic() - self._flushed > _FLUSH_S:
            flush(self._file)
            self._flushed = time.monotonic()

    def restore(self, trial: optuna.trial.FrozenTrial) -> None:
        """Take in a stored trial as the next one."""
        self.study.add_trial(trial)
        self.begin(len(self._ids))

    def settle(self) -> None:
        """End what a killed driver had described as ended but not yet told to Optuna."""
        for trial in self._stored():
            result = trial.user_attrs.get("result")
            if result is not None and not trial.state.is_finished():
                self._close_trial(trial.number, Outcome(result["outcome"]), result["values"])

    def _close_trial(self, number: int, outcome: Outcome, values: Sequence[float] | None) -> None:
        from optuna.trial import TrialState

        state = TrialState.PRUNED if outcome is Outcome.STOPPED else TrialState.FAIL
        if values is not None:
            state = TrialState.COMPLETE
        if number < len(self._ids):
            self._file.set_trial_state_values(self._ids[number], state, values)
        if values is None or _is_replicate(self._stored()[number]):
            self.study.tell(number, state=TrialState.FAIL if values is not None else state)
        else:
            self.study.tell(number, list(values))
        if number == len(self._ids):
            self.begin(number)

    def describe_ended(self, number: int, name: str, value: Any) -> None:
        """Add a fact about a trial that has ended: Optuna locks those, so it goes to the study."""
        self.set(name, {**self._attrs.get(name, {}), str(number): value})

    def close(self) -> None:
        """Let go of the database file, with everything in it."""
        close_database(self._file)
        make_plain(self.path)

    def _stored(self) -> list[optuna.trial.FrozenTrial]:
        return self.study.get_trials(deepcopy=False)


def refuse_other(path: Path, attrs: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Make sure that a run's `attrs` are of this format, of the right types and of what is `fixed`.

    Raises:
        RunError: they are not, naming the differences.
    """
    stored_run(path, attrs)
    for name, value in fixed.items():
        stored = with_defaults(attrs.get(name)) if name == "space" else attrs.get(name)
        changes = list(differences(stored, value))
        if changes:
            raise RunError(
                f"{path}: is a run of another {name}: {'; '.join(changes[:5])}"
                f"{' ...' if len(changes) > 5 else ''}; use another --out"
            )


def read_run(path: str | Path) -> Run:
    """Read a results folder.

    Raises:
        RunError: there is no study in it, or it cannot be read.
    """
    path = Path(path)
    attrs, stored = read_study(path)
    facts = stored_run(path, attrs)
    trials = records_of(path, stored, facts.test_top1)
    return Run(
        path=path,
        name=facts.space.name or path.resolve().name,
        trials=averaged(trials),
        replicates=tuple(trial for trial in trials if trial.replicate_of is not None),
        space=attrs.get("space", {}),
        environment=facts.environment,
        num_trials=facts.num_trials,
        num_baselines=facts.num_baselines,
        baselines=read_baselines(path),
    )


def read_study(path: Path) -> tuple[dict[str, Any], list[optuna.trial.FrozenTrial]]:
    """What is stored of a run as a whole, and Optuna's trials; also while a driver is writing.

    Raises:
        RunError: there is no study in it, or it cannot be read.
    """
    check_study(path)
    with readable(path):
        storage = open_database(path, write=False)
        try:
            study_id = _known_study(path, storage)
            attrs = storage.get_study_user_attrs(study_id)
            check_format(path, attrs)
            return attrs, storage.get_all_trials(study_id, deepcopy=False)
        finally:
            close_database(storage)


def _known_study(path: Path, storage: optuna.storages.RDBStorage) -> int:
    try:
        return storage.get_study_id_from_name(STUDY_NAME)
    except KeyError:
        raise ForeignStudy(f"{path / FILE_NAME}: holds no study named '{STUDY_NAME}'") from None


def _check_distributions(stored: Sequence[optuna.trial.FrozenTrial]) -> None:
    """Check that each parameter has one kind of distribution; Optuna fails late at a second kind.

    Raises:
        ValueError: a parameter of two kinds.
    """
    from optuna.distributions import BaseDistribution, check_distribution_compatibility

    first: dict[str, BaseDistribution] = {}
    for trial in stored:
        for name, kind in trial.distributions.items():
            if first.setdefault(name, kind) is not kind:
                check_distribution_compatibility(first[name], kind)


def _is_replicate(trial: optuna.trial.FrozenTrial) -> bool:
    return trial.user_attrs.get("network", {}).get("replicate_of") is not None


def _as_seen(trial: optuna.trial.FrozenTrial) -> optuna.trial.FrozenTrial:
    """A stored trial as Optuna's samplers see it.

    Replicates are complete in the file and failed in memory. Otherwise TPE and NSGA-II would count
    them as separate networks, and most good networks would be replicates of the front.
    """
    if not (_is_replicate(trial) and trial.state.is_finished()):
        return trial
    from optuna.trial import TrialState

    seen = copy(trial)
    seen.state, seen.values = TrialState.FAIL, None
    return seen


def _make(path: Path, fixed: Mapping[str, Any], names: Sequence[str], costs: Sequence[str]) -> None:
    """Make the study beside its place, and move it there once it is whole: a driver that is killed
    meanwhile leaves no study."""
    draft = path / DRAFT
    files = [FILE_NAME + ending for ending in ("", "-wal", "-shm", "-journal")]
    remove_folder(draft, files)
    draft.mkdir(exist_ok=True)
    file = open_database(draft, write=True)
    try:
        _begin(file, fixed, names, costs)
    finally:
        close_database(file)
    make_plain(draft)
    (draft / FILE_NAME).replace(path / FILE_NAME)
    remove_folder(draft, files)


def _begin(
    file: optuna.storages.RDBStorage,
    fixed: Mapping[str, Any],
    names: Sequence[str],
    costs: Sequence[str],
) -> tuple[int, dict[str, Any]]:
    """The run's study in its file and what is stored about it, made where there is none."""
    study_id = _study_id(file, names, costs)
    attrs = file.get_study_user_attrs(study_id)
    if "format" not in attrs:  # written last, so that no half of these is kept
        for name, value in {**fixed, "format": FORMAT}.items():
            file.set_study_user_attr(study_id, name, value)
        attrs |= {**fixed, "format": FORMAT}
    return study_id, attrs


def _study_id(file: optuna.storages.RDBStorage, names: Sequence[str], costs: Sequence[str]) -> int:
    """The run's study in its file, made where there is none."""
    import optuna

    try:
        return file.get_study_id_from_name(STUDY_NAME)
    except KeyError:
        directions = [optuna.study.StudyDirection[d.upper()] for d in directions_of(costs)]
        study_id = file.create_new_study(directions, STUDY_NAME)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            optuna.Study(STUDY_NAME, file).set_metric_names(list(names))
        return study_id
