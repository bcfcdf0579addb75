"""The recipe that a search judges networks by: the space's own, or one tuned for the images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitnas.config.files import validate
from vitnas.config.space import SearchSpace
from vitnas.config.training import ProxyConfig
from vitnas.data.telling import Teller
from vitnas.durations import in_turns, span
from vitnas.engine.backends.backend import Backend
from vitnas.engine.options import SearchOptions
from vitnas.engine.store import study
from vitnas.engine.store.folder import TUNE_FOLDER, check_folder
from vitnas.engine.store.stored import stored_run
from vitnas.engine.tuning.options import TuneOptions
from vitnas.engine.tuning.result import BOOK_FILE
from vitnas.engine.tuning.run import COMPARED, NothingTunedError, how_long, tune_on
from vitnas.engine.tuning.tuner import WAVE

SHARE = 0.25
"""Trainings of tuning for each trial of the search; minutes of tuning for each minute."""
_LEAST = 12
_MOST = 60

Found = tuple[SearchSpace, dict[str, Any] | None]
"""The space with the recipe to use, and what the run stores of it: `{"tuned": ...}`, or None."""


def known_recipe(space: SearchSpace, path: Path, options: SearchOptions) -> Found:
    """The recipe that this run, or one that it starts from, has tuned for the same space.

    Raises:
        RunError: such a run cannot be read.
    """
    for folder in (path, *map(Path, options.start_from)):
        if not (folder / study.FILE_NAME).is_file():
            continue
        tuned = stored_run(folder, study.read_study(folder)[0]).tuned
        if tuned is not None and validate(ProxyConfig, tuned.own) == space.config.proxy:
            proxy = validate(ProxyConfig, tuned.proxy, file=folder)
            return space.with_proxy(proxy), {"tuned": tuned.model_dump(mode="json")}
    return space, None


def tuned_recipe(
    backend: Backend,
    space: SearchSpace,
    path: Path,
    options: SearchOptions,
    teller: Teller,
) -> Found:
    """Tune the recipe of a new run on images that none is known for; elsewhere the space's own.

    Args:
        backend: what trains; it reads the images.
        space: what will be searched.
        path: the run's folder; what is tried goes to a folder in it, so that it resumes.
        options: of the search.
        teller: told what is found, and what is done.
    """
    how = tune_options(options) if _is_asked(space, path, options) else None
    if how is None:
        return space, None
    folder = path / TUNE_FOLDER
    check_folder(folder, BOOK_FILE)
    images = backend.prepare(space, teller=teller)
    if line := too_short(how, images.training_seconds, backend.resources.workers):
        teller.notice(line)
        return space, None
    teller.notice(_tuning_first(how_long(options.num_trials or 0, images, backend)))
    try:
        found = tune_on(backend, images, space, folder, how, teller)
    except NothingTunedError as error:
        teller.notice(f"the space's own recipe is used: {error}")
        return space, None
    teller.notice(found.line)
    return space.with_proxy(found.proxy), {"tuned": found.stored()}


def _tuning_first(trials: str) -> str:
    """What a search says before it tunes; `trials` is how long its trials take, or empty."""
    text = "no recipe is known for these images, so the recipe is tuned first"
    text += f"; the trials after it take {trials}" if trials else ""
    return f"{text} (--no-tune takes the space's recipe)"


def too_short(how: TuneOptions, seconds: float | None, workers: int) -> str | None:
    """A line if the time for tuning is over before the first recipes can have been tried.

    Args:
        how: what the tuning would be.
        seconds: of one training; None where it is not known.
        workers: how many train at a time.
    """
    if how.minutes is None or not seconds:
        return None
    number = min(WAVE, how.trials) * how.networks
    first = in_turns(number, seconds, workers)
    if first <= 60 * how.minutes:
        return None
    return (
        f"the space's own recipe is used: tuning has {how.minutes:g} min, and its first {number} "
        f"trainings take about {span(first)}; `vitnas tune` takes its time"
    )


def why_untuned(space: SearchSpace, path: Path, options: SearchOptions) -> str | None:
    """A line if `tuned_recipe` leaves out a tuning because the run has too few trials for it."""
    if tune_options(options) is not None or not _is_asked(space, path, options):
        return None
    return (
        f"--trials {options.num_trials}: too few to tune the recipe first (from {_LEAST} on); "
        "`vitnas tune` finds one for these images"
    )


def _is_asked(space: SearchSpace, path: Path, options: SearchOptions) -> bool:
    """Whether a new run is to tune: no recipe is known for its images, and neither its space nor an
    option says one."""
    is_known = space.config.data.facts.has_recipe or space.config.proxy.recipe is not None
    is_begun = bool(options.start_from) or (path / study.FILE_NAME).exists()
    return options.tune and options.lr is None and not is_known and not is_begun


def tune_options(options: SearchOptions) -> TuneOptions | None:
    """How a search tunes: by trainings or, without a number of trials, by time; None = not at all.

    A search of n trials tunes in n / 4 trainings at most, but in 12 at least.
    """
    trials = options.num_trials
    if trials is not None and trials < _LEAST:
        return None
    trainings = min(_MOST, max(_LEAST, round(SHARE * trials))) if trials else _MOST
    networks = 2 if trainings < 2 * _LEAST else 3
    hours = [time for time in (options.hours, options.gpu_hours) if time is not None]
    return TuneOptions(
        trials=trainings // networks - COMPARED,
        networks=networks,
        seeds=1,
        minutes=60 * SHARE * min(hours) if hours else None,
        seed=options.seed,
    )
