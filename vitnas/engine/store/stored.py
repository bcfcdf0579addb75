"""What study.db holds, as types: everything that is read from it is checked here, once.

A study may come from anybody, so every type is checked. The rest of the program sees `StoredRun`
and `TrialRecord`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vitnas.config.costs import MEASURED
from vitnas.config.findings import RuleError, as_config_error
from vitnas.engine.store.database import FILE_NAME, ForeignStudy
from vitnas.errors import RunError, shorten
from vitnas.records import Outcome, TrialRecord
from vitnas.sessions import Amount, Count, Environment, Facts, Proxy, Text

if TYPE_CHECKING:
    from datetime import datetime

    from optuna.trial import FrozenTrial

FORMAT = 1
Percent = Annotated[float, Field(ge=0.0, le=100.0)]
_Model = TypeVar("_Model", bound=BaseModel)


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class StoredSpace(Facts):
    """What a reader needs of a space's tree; an older one need not be a space of today."""

    name: Text | None = None
    proxy: Proxy = Proxy()
    objectives: dict[Text, Text] | None = None
    limits: dict[str, Any] | None = None


class StoredRecipe(_Stored):
    """What was tuned before the first trial.

    Attributes:
        own: the recipe of the space's file.
        proxy: the one that the run uses.
        line: what was found, for readers.
    """

    own: dict[str, Any]
    proxy: dict[str, Any]
    line: Text = ""


class StoredRun(_Stored):
    """What is stored of a run as a whole."""

    space: StoredSpace = StoredSpace()
    environment: Environment = Environment()
    num_trials: Count = 0
    num_baselines: Count = 0
    num_sessions: Count = 0
    test_top1: dict[str, Percent] = {}
    tuned: StoredRecipe | None = None


class StoredNetwork(_Stored):
    """What is to be trained; see `TrialRecord`."""

    config: dict[str, Any] = {}
    key: Text = ""
    flops: Count = 0
    num_params: Count = 0
    seed: int = 0
    origin: Text = ""
    taken: bool = False
    replicate_of: Count | None = None


class StoredResult(_Stored):
    """How a trial ended; see `TrialRecord`."""

    outcome: Annotated[Outcome, Field(strict=False)] = Outcome.FAILED
    values: list[float] | tuple[float, ...] | None = None
    error: Text | None = None
    seconds: Amount | None = None
    duplicate_of: Count | None = None
    device: Text = ""
    gpu_seconds: Amount = 0.0
    float_top1: Percent | None = None


class StoredCosts(_Stored):
    """What was measured of it on a device, by the cost's name; see `TrialRecord`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Amount | None]
    measured_on: Text = ""


class StoredTrial(_Stored):
    """Everything that is stored about a candidate, besides Optuna's own fields."""

    network: StoredNetwork = StoredNetwork()
    result: StoredResult = StoredResult()
    measured: StoredCosts = StoredCosts()
    curve: list[Percent] = []
    alone: Text | None = None

    @model_validator(mode="after")
    def _has_ended(self) -> StoredTrial:
        if self.result.outcome is Outcome.RUNNING:
            raise RuleError("a result is of a trial that has ended", "result.outcome", "running")
        if self.result.outcome is Outcome.COMPLETE and not self.curve:
            raise RuleError("a complete trial has an accuracy after each epoch", "curve", [])
        return self


def check_format(path: Path, attrs: Mapping[str, Any]) -> None:
    """Make sure that the study in `path` is of the format that this version reads.

    Raises:
        RunError: it is of another one.
    """
    if "format" in attrs and attrs["format"] != FORMAT:
        raise ForeignStudy(
            f"{path / FILE_NAME}: format {shorten(attrs['format'])}, this vitnas reads {FORMAT}"
        )


def stored_run(path: Path, attrs: Mapping[str, Any]) -> StoredRun:
    """The study's attributes, checked.

    Raises:
        RunError: another format, or a value of a wrong type.
    """
    check_format(path, attrs)
    return _checked(StoredRun, attrs, f"{path / FILE_NAME}")


def stored_trial(path: Path, index: int, attrs: Mapping[str, Any]) -> StoredTrial:
    """The attributes of trial `index`, checked.

    Raises:
        RunError: a value of a wrong type.
    """
    facts = _checked(StoredTrial, attrs, f"{path / FILE_NAME}: trial {index}")
    earlier = {
        "network.replicate_of": facts.network.replicate_of,
        "result.duplicate_of": facts.result.duplicate_of,
    }
    for address, number in earlier.items():
        if number is not None and number >= index:
            raise _wrong(path, index, address, number, "is the number of an earlier trial")
    return facts


def records_of(
    path: Path, stored: Iterable[FrozenTrial], tested: Mapping[str, float] = {}
) -> tuple[TrialRecord, ...]:
    """Stored trials as plain values, by number.

    Raises:
        RunError: a value of a wrong type, or a number is missing or stands twice.
    """
    records = []
    for index, trial in enumerate(stored):
        if trial.number != index:
            raise _wrong(path, index, "number", trial.number, "numbers count from 0 without a gap")
        if trial.state.name == "WAITING":
            raise _wrong(path, index, "state", "WAITING", "a stored trial runs or has ended")
        records.append(as_record(trial, tested, path))
    return tuple(records)


def as_record(
    trial: FrozenTrial, tested: Mapping[str, float] = {}, path: Path = Path()
) -> TrialRecord:
    """A trial of Optuna's as plain values.

    Raises:
        RunError: a value of a wrong type.
    """
    facts = stored_trial(path, trial.number, trial.user_attrs)
    network, result, measured = facts.network, facts.result, facts.measured.__pydantic_extra__
    return TrialRecord(
        number=trial.number,
        outcome=result.outcome if trial.state.is_finished() else Outcome.RUNNING,
        config=network.config,
        key=network.key,
        flops=network.flops,
        num_params=network.num_params,
        curve=tuple(facts.curve),
        test_top1=tested.get(str(trial.number)),
        seconds=result.seconds,
        seed=network.seed,
        params=trial.params,
        error=result.error,
        duplicate_of=result.duplicate_of,
        device=result.device,
        origin=network.origin,
        taken=network.taken,
        gpu_seconds=result.gpu_seconds,
        started=_seconds(path, trial.number, "datetime_start", trial.datetime_start),
        ended=_seconds(path, trial.number, "datetime_complete", trial.datetime_complete),
        measured={name: cost for name in MEASURED if (cost := measured.get(name)) is not None},
        measured_on=facts.measured.measured_on,
        replicate_of=network.replicate_of,
        float_top1=result.float_top1,
    )


def _checked(model: type[_Model], tree: Mapping[str, Any], where: str) -> _Model:
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise RunError(f"{where}: {as_config_error(error, model)}") from None


def _wrong(path: Path, index: int, address: str, value: Any, rule: str) -> RunError:
    return RunError(f"{path / FILE_NAME}: trial {index}: {address} = {shorten(value)}: {rule}")


def _seconds(path: Path, index: int, address: str, moment: datetime | None) -> float | None:
    """Optuna's local time as seconds since 1970.

    Raises:
        RunError: a moment too far from today to be converted.
    """
    try:
        return None if moment is None else moment.timestamp()
    except (ValueError, OverflowError, OSError):
        raise _wrong(path, index, address, moment, "is no time of this machine") from None
