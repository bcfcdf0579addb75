"""study.db: the Optuna study that is the only truth of a run, and how it is written and read.

One writer, the driver. Everything that a report or a resume needs is in it: the space, the
environment, and for each trial its configuration, cost, curve and outcome. Two objectives in
Optuna's order: top-1 in percent (maximise), FLOPs (minimise).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vitnas.errors import RunError
from vitnas.records import Outcome, Run, TrialRecord

if TYPE_CHECKING:
    import optuna

FILE_NAME = "study.db"
STUDY_NAME = "vitnas"
FORMAT = 1
_NOT_OURS = (LookupError, AssertionError, RuntimeError, ValueError, TypeError, AttributeError)
DIRECTIONS: list[Literal["maximize", "minimize"]] = ["maximize", "minimize"]


class RunStore:
    """A run's study, open for writing.

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
        is_new = not (path / FILE_NAME).exists()
        with _readable(path):
            self.study = optuna.create_study(
                study_name=STUDY_NAME,
                storage=_storage(path),
                directions=DIRECTIONS,
                load_if_exists=True,
            )
        if is_new or not self.study.user_attrs:
            self.set("format", FORMAT)
            for name, value in fixed.items():
                self.set(name, value)
        self._refuse_other(fixed)

    @property
    def attrs(self) -> dict[str, Any]:
        """What is stored about the whole run."""
        return dict(self.study.user_attrs)

    def set(self, name: str, value: Any) -> None:
        self.study.set_user_attr(name, value)

    def records(self) -> tuple[TrialRecord, ...]:
        """All candidates as stored."""
        with _readable(self.path):
            return tuple(as_record(trial) for trial in self._stored())

    def ask(self) -> optuna.Trial:
        return self.study.ask()

    def describe(self, number: int, name: str, value: Any) -> None:
        """Store `value` under `name` with the running trial `number`."""
        storage = self.study._storage
        trial_id = storage.get_trial_id_from_study_id_trial_number(self.study._study_id, number)
        storage.set_trial_user_attr(trial_id, name, value)

    def tell(
        self,
        number: int,
        outcome: Outcome,
        values: tuple[float, float] | None = None,
        **result: Any,
    ) -> None:
        """End trial `number`: `result` first, then the state, so that no ended trial lacks it."""
        self.describe(number, "result", {"outcome": outcome.value, "values": values, **result})
        self._close_trial(number, outcome, values)

    def settle(self) -> None:
        """End what a killed driver had described as ended but not yet told to Optuna."""
        for trial in self._stored():
            result = trial.user_attrs.get("result")
            if result is not None and not trial.state.is_finished():
                self._close_trial(trial.number, Outcome(result["outcome"]), result["values"])

    def _close_trial(self, number: int, outcome: Outcome, values: Sequence[float] | None) -> None:
        import optuna

        if values is not None:
            self.study.tell(number, list(values))
        elif outcome is Outcome.STOPPED:
            self.study.tell(number, state=optuna.trial.TrialState.PRUNED)
        else:
            self.study.tell(number, state=optuna.trial.TrialState.FAIL)

    def describe_ended(self, number: int, name: str, value: Any) -> None:
        """Add a fact about a trial that has ended: Optuna locks those, so it goes to the study."""
        facts = dict(self.study.user_attrs.get(name, {}))
        facts[str(number)] = value
        self.set(name, facts)

    def close(self) -> None:
        """Let go of the database file."""
        self.study._storage.remove_session()

    def _stored(self) -> list[optuna.trial.FrozenTrial]:
        with _readable(self.path):
            return self.study.get_trials(deepcopy=False)

    def _refuse_other(self, fixed: Mapping[str, Any]) -> None:
        stored = self.attrs
        if stored.get("format") != FORMAT:
            raise RunError(
                f"{self.path / FILE_NAME}: format {stored.get('format')}, this vitnas reads "
                f"{FORMAT}; use another --out"
            )
        for name, value in fixed.items():
            changes = list(differences(stored.get(name), value))
            if changes:
                raise RunError(
                    f"{self.path}: is a run of another {name}: {'; '.join(changes[:5])}"
                    f"{' ...' if len(changes) > 5 else ''}; use another --out"
                )


def read_run(path: str | Path) -> Run:
    """Read a results folder.

    Raises:
        RunError: there is no study in it, or it cannot be read.
    """
    import optuna

    path = Path(path)
    if not (path / FILE_NAME).is_file():
        raise RunError(f"{path}: no {FILE_NAME} in it, so it is not a run of vitnas")
    with _readable(path):
        study = optuna.load_study(study_name=STUDY_NAME, storage=_storage(path))
        attrs = study.user_attrs
        tested = attrs.get("test_top1", {})
        trials = tuple(as_record(t, tested) for t in study.get_trials(deepcopy=False))
        study._storage.remove_session()
    space = attrs.get("space", {})
    return Run(
        path=path,
        name=space.get("name", path.name),
        trials=trials,
        space=space,
        environment=attrs.get("environment", {}),
        num_trials=attrs.get("num_trials", 0),
    )


def as_record(trial: optuna.trial.FrozenTrial, tested: Mapping[str, float] = {}) -> TrialRecord:
    """A stored trial as plain values."""
    network = trial.user_attrs.get("network", {})
    result = trial.user_attrs.get("result", {})
    running = not trial.state.is_finished()
    outcome = Outcome.RUNNING if running else Outcome(result.get("outcome", "failed"))
    return TrialRecord(
        number=trial.number,
        outcome=outcome,
        config=network.get("config", {}),
        key=network.get("key", ""),
        flops=network.get("flops", 0),
        num_params=network.get("num_params", 0),
        curve=tuple(trial.user_attrs.get("curve", ())),
        test_top1=tested.get(str(trial.number)),
        seconds=result.get("seconds"),
        seed=network.get("seed", 0),
        params=trial.params,
        error=result.get("error"),
        duplicate_of=result.get("duplicate_of"),
        device=result.get("device", ""),
    )


def differences(old: Any, new: Any, address: str = "") -> Iterator[str]:
    """`model.stages[0].depth: 2 -> 3` for every leaf that differs; names and texts are free."""
    from vitnas.errors import join_address, shorten

    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=str):
            if not (address == "" and key in ("name", "description")):
                here = join_address(address, str(key))
                yield from differences(old.get(key), new.get(key), here)
    elif _is_list(old) and _is_list(new) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, join_address(address, index))
    elif old != new:
        yield f"{address}: {shorten(old)} -> {shorten(new)}" if address else f"{old} -> {new}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _storage(path: Path) -> optuna.storages.RDBStorage:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = f"sqlite:///{(path / FILE_NAME).resolve()}"
    return optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 30}})


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turn what a full disk or a damaged database raises in the middle of a run into one line."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise RunError(f"{path / FILE_NAME}: cannot be written: {reason}") from error


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what a damaged database raises into one line."""
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, OptunaError, *_NOT_OURS) as error:
        raise RunError(
            f"{path / FILE_NAME}: cannot be read as a study ({type(error).__name__}); "
            "trials.csv and configs/ beside it still hold what was reported"
        ) from error
