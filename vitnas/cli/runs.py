"""Commands that make a run and look at one: search, tune, status, salvage, report, replay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vitnas.cli.app import MOST, Images, Json, RunFolder, SpaceName, app, one_of, print_front
from vitnas.cli.declared import option_of, with_options
from vitnas.cli.streams import complain, say
from vitnas.engine.options import SearchOptions
from vitnas.engine.pruning import CONFIDENCE, PRUNERS
from vitnas.engine.samplers import SAMPLERS, check_sampler
from vitnas.engine.tuning.options import TuneOptions


@app.command()
@with_options(SearchOptions)
def search(
    context: typer.Context,
    space: SpaceName = "digits",
    data: Images = None,
    out: Annotated[
        Path | None, typer.Option(help="Results folder; default results/<name of the space>.")
    ] = None,
    no_prune: Annotated[bool, typer.Option("--no-prune", help="Short for --pruner none.")] = False,
    **options: Any,
) -> None:
    """Search SPACE until --trials trainings have ended; resumes a stopped run."""
    if no_prune:
        options["pruner"] = _no_pruner(context, options["pruner"])
    from vitnas import api

    run = api.search(api.load_space(space, data), out, notice=complain, **options)
    print_front(run)
    from vitnas.report import ended_text

    why = ended_text(run)
    if why:
        complain(why)


@app.command()
@with_options(TuneOptions)
def tune(
    space: SpaceName = "digits",
    data: Images = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder; default results/tune/<name of the space>.")
    ] = None,
    **options: Any,
) -> None:
    """Find the recipe of SPACE's short training for its images; resumes what was stopped."""
    from vitnas import api
    from vitnas.engine.tuning.result import RECIPE_FILE

    found, folder = api.tune(api.load_space(space, data), out, notice=complain, **options)
    say(found.text())
    say(f"{folder / RECIPE_FILE}: the recipe, to be put into the space")


def _no_pruner(context: typer.Context, pruner: str) -> str:
    """What `--no-prune` means for `--pruner`.

    Raises:
        ConfigError: both are given and disagree.
    """
    source = context.get_parameter_source("pruner")
    if source is not None and source.name != "DEFAULT" and pruner != "none":
        from vitnas.errors import ConfigError

        raise ConfigError(f"--no-prune means --pruner none, not {pruner}; drop one")
    return "none"


@app.command()
def status(
    run: RunFolder,
    as_json: Json = False,
) -> None:
    """Print what RUN has done and is doing; also while it is searched. Needs no torch."""
    from vitnas.engine.watch.status import read_status, status_text

    found = read_status(run)
    say(json.dumps(found.to_json(), indent=2) if as_json else status_text(found))


@app.command()
def salvage(
    run: Annotated[Path, typer.Argument(help="A results folder with a damaged study.db.")],
) -> None:
    """Save what can be read of a damaged study of RUN; the search can be resumed afterwards."""
    from vitnas.engine.store.salvage import salvage as save

    done = save(run)
    say(
        f"{run}: {done.saved} candidates saved, {done.lost} lost, {done.unfinished} to be trained "
        f"again; the damaged file is {done.damaged.name}"
    )


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="A results folder; or several, to compare them.")
    ],
    calibration: Annotated[
        Path | None, typer.Option(help="A calibration of the same space; it is copied into RUN.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(help="Page of several runs; default compared.html in the first one's folder."),
    ] = None,
) -> None:
    """Rebuild the report of a run from its study, or compare several; needs no torch or Ray."""
    from vitnas.api import load_run
    from vitnas.plugins import closed
    from vitnas.report import write_report
    from vitnas.report.calibrated import adopt

    _check_report(runs, calibration, to)
    with closed():
        if len(runs) > 1:
            _compare(runs, to)
            return
        loaded = load_run(runs[0])
        if calibration is not None:
            adopt(loaded, calibration)
        write_report(loaded)
        print_front(loaded)


def _check_report(runs: list[Path], calibration: Path | None, to: Path | None) -> None:
    """Make sure that options fit the number of runs.

    Raises:
        ConfigError: one is for one run, or for several.
    """
    from vitnas.errors import ConfigError

    if calibration is not None and len(runs) > 1:
        raise ConfigError(f"--calibration is for one run, not for {len(runs)}; drop it")
    if to is not None and len(runs) == 1:
        raise ConfigError("--to is for several runs; the report of one lies in its folder")


def _compare(folders: list[Path], to: Path | None) -> None:
    from vitnas.api import load_run
    from vitnas.files import check_replaceable
    from vitnas.report.compared import check_folders, compare
    from vitnas.report.compared_page import FILE_NAME, is_compared, write_compared
    from vitnas.report.compared_text import compared_text

    check_folders(folders)
    found = compare([load_run(folder) for folder in folders])
    page = folders[0] / FILE_NAME if to is None else to
    check_replaceable(page, is_compared)
    write_compared(found, page)
    say(compared_text(found))
    say(f"comparison: {page}")


@app.command()
def pick(
    run: RunFolder,
    under: Annotated[str | None, typer.Option(help="At most these FLOPs, e.g. 300M.")] = None,
    params: Annotated[str | None, typer.Option(help="At most these parameters, e.g. 1M.")] = None,
    latency_ms: Annotated[
        str | None, typer.Option(help="At most this latency, if the run measured it.")
    ] = None,
    latency_onnx_ms: Annotated[
        str | None, typer.Option(help="At most this latency in onnxruntime, if measured.")
    ] = None,
    min_top1: Annotated[
        float | None,
        typer.Option(min=0, max=100, help="The fewest FLOPs with at least this top-1 in percent."),
    ] = None,
    robust: Annotated[
        bool, typer.Option("--robust", help="By the top-1 that a network exceeds with 95 %.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Choose a network of RUN: the most accurate within bounds, and how sure that is."""
    from vitnas.api import load_run
    from vitnas.exported.choose import Target, bound
    from vitnas.report.choice import choose
    from vitnas.report.choice_text import choice_json, choice_text

    given = {
        "flops": ("--under", under),
        "num_params": ("--params", params),
        "latency_ms": ("--latency-ms", latency_ms),
        "latency_onnx_ms": ("--latency-onnx-ms", latency_onnx_ms),
    }
    bounds = {cost: bound(name, text) for cost, (name, text) in given.items() if text is not None}
    found = choose(load_run(run), Target(bounds, min_top1, robust))
    say(json.dumps(choice_json(found), indent=2) if as_json else choice_text(found))


@app.command()
def replay(
    run: Annotated[
        str, typer.Argument(help="A results folder, a table's file, or a shipped table by name.")
    ] = "digits",
    sampler: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(SAMPLERS)}; repeatable; default all.")
    ] = None,
    pruner: Annotated[
        list[str] | None, typer.Option(help="none, front, curve, both; repeatable; default all.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=MOST["seeds"], help="Searches of each pair.")
    ] = 20,
    workers: Annotated[
        int, typer.Option(min=1, max=MOST["workers"], help="Simulated trainings at a time.")
    ] = 1,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trainings of a search; default the whole table.")
    ] = None,
    confidence: Annotated[float, option_of(SearchOptions, "confidence")] = CONFIDENCE,
    pruner_bins: Annotated[int, option_of(SearchOptions, "pruner_bins")] = 1,
    as_json: Json = False,
    record: Annotated[
        Path | None, typer.Option(help="Write RUN's curves as a table's file instead.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw hypervolume against epochs, too: a PNG to write.")
    ] = None,
) -> None:
    """Search recorded curves instead of training: samplers and pruners compared."""
    from vitnas.cores import cores
    from vitnas.files import check_replaceable
    from vitnas.plotting import is_picture
    from vitnas.replay import comparison, tables
    from vitnas.report.replay_plot import write_replay_png

    for name in sampler or ():
        check_sampler(name, "--sampler")
    for name in pruner or ():
        one_of("--pruner", name, PRUNERS)
    if plot is not None:
        check_replaceable(plot, is_picture)
    table = tables.find_table(run)
    if record is not None:
        check_replaceable(record, tables.is_table)
        tables.write_table(table, record)
        say(f"{record}: {len(table.networks)} networks, {record.stat().st_size} bytes")
        return
    pairs = comparison.compare(
        table,
        sampler or list(SAMPLERS),
        pruner or PRUNERS,  # type: ignore[arg-type]
        seeds=seeds,
        workers=workers,
        trials=trials,
        confidence=confidence,
        bins=pruner_bins,
        processes=cores(),
        listener=lambda line: say(line, file=sys.stderr),
    )
    if plot is not None:
        write_replay_png(table, pairs, plot)
    text = comparison.comparison_text(table, pairs)
    say(json.dumps(comparison.comparison_json(table, pairs)) if as_json else text)
