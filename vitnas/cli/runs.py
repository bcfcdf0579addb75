"""Commands that make a run and look at one: search, status, salvage, report, replay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vitnas.cli.app import (
    Confidence,
    Json,
    PrunerBins,
    RunFolder,
    SpaceName,
    app,
    complain,
    one_of,
    print_front,
)


@app.command()
def search(
    space: SpaceName = "digits",
    out: Annotated[
        Path | None, typer.Option(help="Results folder; default results/<name of the space>.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trainings the run shall have; default 24.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.0, help="Start nothing more after so long.")
    ] = None,
    gpu_hours: Annotated[
        float | None, typer.Option(min=0.0, help="Start nothing more once the run has used these.")
    ] = None,
    trial_minutes: Annotated[
        float | None, typer.Option(min=0.0, help="End a training that takes longer.")
    ] = None,
    start_from: Annotated[
        list[Path] | None, typer.Option(help="Take over the results of this run; repeatable.")
    ] = None,
    seed_configs: Annotated[
        list[str] | None,
        typer.Option(help="Train first: a model file, zoo, a model of it, a run; repeatable."),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Log curves to tensorboard/ in the folder.")
    ] = False,
    replicates: Annotated[
        int,
        typer.Option(min=0, help="Train what may be on the front again, with so many other seeds."),
    ] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Trainings at a time; default one a core or GPU.")
    ] = None,
    gpus_per_trial: Annotated[
        float | None, typer.Option(min=0.0, help="GPUs for each training, e.g. 0.25.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    backend: Annotated[
        str, typer.Option(help="tune (Ray Tune) or serial (this process).")
    ] = "tune",
    ray_address: Annotated[
        str | None, typer.Option(help="A running Ray cluster, e.g. auto or 10.0.0.1:6379.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="ehvi, tpe, nsga2 or random.")] = "ehvi",
    pruner: Annotated[
        str | None,
        typer.Option(help="Who stops trials early: curve (default), front, both or none."),
    ] = None,
    no_prune: Annotated[bool, typer.Option("--no-prune", help="Short for --pruner none.")] = False,
    confidence: Confidence = 0.98,
    pruner_bins: PrunerBins = 1,
) -> None:
    """Search SPACE until --trials trainings have ended; goes on with a stopped run."""
    one_of("--backend", backend, ("tune", "serial"))
    one_of("--sampler", sampler, ("ehvi", "tpe", "nsga2", "random"))
    one_of("--pruner", pruner or "none", ("none", "front", "curve", "both"))
    if no_prune and pruner not in (None, "none"):
        from vitnas.errors import ConfigError

        raise ConfigError(f"--no-prune means --pruner none, not {pruner}; drop one")
    from vitnas import api
    from vitnas.engine.options import SearchOptions
    from vitnas.engine.watch.display import Display

    found = api.load_space(space)
    options: dict[str, Any] = {
        "trials": trials,
        "hours": hours,
        "gpu_hours": gpu_hours,
        "trial_minutes": trial_minutes,
        "start_from": start_from or (),
        "seed_configs": seed_configs or (),
        "tensorboard": tensorboard,
        "replicates": replicates,
        "workers": workers,
        "gpus_per_trial": gpus_per_trial,
        "seed": seed,
        "backend": backend,
        "ray_address": ray_address,
        "sampler": sampler,
        "pruner": "none" if no_prune else pruner or "curve",
        "confidence": confidence,
        "pruner_bins": pruner_bins,
    }
    num_trials = SearchOptions(**options).num_trials
    epochs, costs = found.config.proxy.epochs, found.config.objectives.costs
    with Display(num_trials, epochs, costs=costs) as display:
        listen = display.listen
        run = api.search(found, out, listener=listen, notice=complain, **options)
    print_front(run)
    from vitnas.report import ended_text

    why = ended_text(run)
    if why:
        complain(why)


@app.command()
def status(
    run: RunFolder,
    as_json: Json = False,
) -> None:
    """Print what RUN has done and is doing; also while it is searched. Needs no torch."""
    from vitnas.engine.watch.status import read_status, status_text

    found = read_status(run)
    print(json.dumps(found.to_json(), indent=2) if as_json else status_text(found))


@app.command()
def salvage(
    run: Annotated[Path, typer.Argument(help="A results folder with a damaged study.db.")],
) -> None:
    """Save what can be read of a damaged study of RUN; the search goes on afterwards."""
    from vitnas.engine.store.salvage import salvage as save

    done = save(run)
    print(
        f"{run}: {done.saved} candidates saved, {done.lost} lost, {done.unfinished} to be trained "
        f"again; the damaged file is {done.damaged.name}"
    )


@app.command()
def report(
    run: RunFolder,
) -> None:
    """Rebuild tables, plots and report of RUN from its study; needs neither torch nor Ray."""
    from vitnas.api import load_run
    from vitnas.report import write_report

    loaded = load_run(run)
    write_report(loaded)
    print_front(loaded)


@app.command()
def replay(
    run: Annotated[
        str, typer.Argument(help="A results folder, a table's file, or a shipped table by name.")
    ] = "digits",
    sampler: Annotated[
        list[str] | None, typer.Option(help="ehvi, tpe, nsga2, random; repeatable; default all.")
    ] = None,
    pruner: Annotated[
        list[str] | None, typer.Option(help="none, front, curve, both; repeatable; default all.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Searches of each pair.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Simulated trainings at a time.")] = 1,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trainings of a search; default the whole table.")
    ] = None,
    confidence: Confidence = 0.98,
    pruner_bins: PrunerBins = 1,
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
    from vitnas.engine.pruning.pareto import PRUNERS
    from vitnas.engine.samplers import SAMPLERS
    from vitnas.replay import comparison, tables

    for name in sampler or ():
        one_of("--sampler", name, SAMPLERS)
    for name in pruner or ():
        one_of("--pruner", name, PRUNERS)
    table = tables.find_table(run)
    if record is not None:
        tables.write_table(table, record)
        print(f"{record}: {len(table.networks)} networks, {record.stat().st_size} bytes")
        return
    pairs = comparison.compare(
        table,
        sampler or SAMPLERS,  # type: ignore[arg-type]
        pruner or PRUNERS,  # type: ignore[arg-type]
        seeds=seeds,
        workers=workers,
        trials=trials,
        confidence=confidence,
        bins=pruner_bins,
        processes=cores(),
        listener=lambda line: print(line, file=sys.stderr),
    )
    if plot is not None:
        from vitnas.report.compared import write_comparison

        write_comparison(table, pairs, plot)
    text = comparison.comparison_text(table, pairs)
    print(json.dumps(comparison.comparison_json(table, pairs)) if as_json else text)
