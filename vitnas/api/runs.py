"""Spaces and runs: what a search reads, finds and leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.data import DataConfig
from vitnas.config.data_names import read_data
from vitnas.config.space import SearchSpace
from vitnas.config.space import load_space as _load_space
from vitnas.cost.survey import check_limits

if TYPE_CHECKING:
    from vitnas.calibration.result import Calibration
    from vitnas.engine.tuning.result import Tuned
    from vitnas.engine.watch.watcher import Listener
    from vitnas.records import TrialRecord
    from vitnas.run import Run

DEFAULT_SPACE = "digits"


def load_space(
    path: str | Path = DEFAULT_SPACE, data: str | DataConfig | None = None
) -> SearchSpace:
    """Read a space file, or a shipped space by name, and make sure that its limits can be met.

    Args:
        path: the file or the name.
        data: images in place of the space's own: a data set's name, `name:folder`, a folder of
            images by class, or a space file. The networks get as many classes and channels.

    Raises:
        ConfigError: one line with file, address, value and rule.
    """
    space = _load_space(path, read_data(data, trains=True) if isinstance(data, str) else data)
    check_limits(space)
    return space


def search(
    space: SearchSpace | str | Path = DEFAULT_SPACE,
    out: str | Path | None = None,
    *,
    progress: bool = True,
    listener: Listener | None = None,
    notice: Callable[[str], None] | None = None,
    **options: Any,
) -> Run:
    """Search a space and write its results folder; the same call resumes a stopped run.

    Args:
        space: a space, its file, or the name of a shipped one.
        out: the results folder; default `results/<name>`.
        progress: whether to print what is done, a line a trial, and on a terminal a live panel.
        listener: called with every change; see `vitnas.engine.watch.watcher.Listener`.
        notice: called with lines for whoever watches; by default they are printed with `progress`.
        **options: fields of `vitnas.engine.options.SearchOptions`.

    Returns:
        The run, its front scored on the test split.

    Raises:
        VitnasError: the space, folder, data or device cannot be used; nothing was written.
    """
    from vitnas.engine.declare import check
    from vitnas.engine.options import SearchOptions

    check(SearchOptions, options)
    from vitnas.engine.search import run_search
    from vitnas.engine.store.study import FILE_NAME
    from vitnas.engine.watch.display import Display
    from vitnas.engine.watch.watcher import Watcher
    from vitnas.report import write_report

    found = space if isinstance(space, SearchSpace) else load_space(space)
    folder = results_folder(out, found.name)
    chosen, config = SearchOptions(**options), found.config
    trials, costs = chosen.num_trials, config.objectives.costs
    epochs = chosen.epochs or config.proxy.epochs
    display = Display(
        trials,
        epochs,
        costs=costs,
        shown=progress,
        baselines_follow=bool(chosen.most_baselines),
        sized=len(found.image_sizes()) > 1,
    )
    with display:

        def listen(event: str, trial: TrialRecord) -> None:
            display.listen(event, trial)
            if listener is not None:
                listener(event, trial)

        def report_so_far() -> None:
            display.say("writing the report so far")
            write_report(load_run(folder))
            tell(f"the report so far, before the baselines: {folder / 'report.html'}")

        tell = notice or display.note
        watcher = Watcher(
            notice=tell,
            doing=display.say,
            listener=listen,
            ended=display.note,
            scored_by=display.scored_by,
            searched=report_so_far,
        )
        try:
            run = run_search(found, folder, chosen, watcher)
        except KeyboardInterrupt:
            if (folder / FILE_NAME).is_file():
                write_report(load_run(folder))
            raise
        display.say("writing the report")
        write_report(run)
    return run


def tune(
    space: SearchSpace | str | Path = DEFAULT_SPACE,
    out: str | Path | None = None,
    *,
    notice: Callable[[str], None] = print,
    **options: Any,
) -> tuple[Tuned, Path]:
    """Find the recipe of a space's short training for its images; the same call resumes.

    Args:
        space: a space, its file, or the name of a shipped one.
        out: the folder; default `results/tune/<name>`.
        notice: called with lines for whoever watches.
        **options: fields of `vitnas.engine.tuning.options.TuneOptions`.

    Returns:
        What was found: `proxy`, `gain`, `tried`; and the folder that holds it.

    Raises:
        VitnasError: the space, folder, data or device cannot be used; or no training ended well.
    """
    from vitnas.engine.declare import check
    from vitnas.engine.tuning.options import TuneOptions

    check(TuneOptions, options)
    from vitnas.data.telling import Teller
    from vitnas.engine.tuning.run import run_tune

    found = space if isinstance(space, SearchSpace) else load_space(space)
    folder = results_folder(out, "tune", found.name)
    return run_tune(found, folder, TuneOptions(**options), Teller(notice, notice)), folder


def calibrate(
    space: SearchSpace | str | Path = DEFAULT_SPACE,
    out: str | Path | None = None,
    *,
    notice: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> tuple[Calibration, Path]:
    """Measure how well cheap trainings of a space foretell long ones; see `docs/calibrate.md`.

    The same call resumes a calibration that was stopped.

    Args:
        space: a space, its file, or the name of a shipped one.
        out: the folder; default `results/calibrate/<name>`.
        notice: called with a line after every training.
        **options: fields of `vitnas.calibration.options.CalibrationOptions`.

    Returns:
        What was found, and the folder that holds it.

    Raises:
        VitnasError: the space, options, folder, data or device cannot be used.
    """
    from vitnas.calibration.options import CalibrationOptions
    from vitnas.engine.declare import check

    check(CalibrationOptions, options)
    from vitnas.calibration.run import run_calibration

    found = space if isinstance(space, SearchSpace) else load_space(space)
    folder = results_folder(out, "calibrate", found.name)
    return run_calibration(found, folder, CalibrationOptions(**options), notice), folder


def confirm(run: Run | str | Path, *, notice: Callable[[str], None] = print, **options: Any) -> Run:
    """Train some of a run's front and baselines of like FLOPs for long; the same call resumes.

    Each training is a new process. So a script calls this below `if __name__ == "__main__":`.

    Args:
        run: it or its folder, which keeps the results and the networks; its report is rebuilt.
        notice: called with a line after every training.
        **options: fields of `vitnas.confirmation.options.ConfirmOptions`.

    Returns:
        The run; `run.long` has the results.

    Raises:
        VitnasError: there is no run or no such trial, or all trainings failed.
    """
    from vitnas.confirmation.options import ConfirmOptions
    from vitnas.engine.declare import check

    check(ConfirmOptions, options)
    from vitnas.confirmation.run import run_confirmation
    from vitnas.report import write_report

    found = run_confirmation(folder_of(run), ConfirmOptions(**options), notice)
    write_report(found)
    return found


def load_run(path: str | Path) -> Run:
    """Read a results folder, without torch or Ray.

    Raises:
        RunError: there is no run in it, or it is damaged.
    """
    from vitnas.engine.store.study import read_run

    return read_run(path)


def opened(run: Run | str | Path) -> Run:
    """A run that is given as itself or by its folder.

    Raises:
        RunError: there is no run in it, or it is damaged.
    """
    return load_run(run) if isinstance(run, str | Path) else run


def folder_of(run: Run | str | Path) -> Path:
    """The folder of a run that is given as itself or by it."""
    return Path(run) if isinstance(run, str | Path) else run.path


def results_folder(out: str | Path | None, *rooms: str) -> Path:
    """The folder that a user names, or the one in `results/`."""
    return Path("results", *rooms) if out is None else Path(out)
