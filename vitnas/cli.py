"""The command line: parses, calls `vitnas.api`, prints. No logic of its own.

Exit codes: 0 done, 1 a bug of ours (with its traceback), 2 something the user can mend (one line
on stderr), 130 interrupted and resumable.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitnas.errors import VitnasError

if TYPE_CHECKING:
    from vitnas.records import Run

_INTERRUPTED = "interrupted; the same command goes on where it stopped"

app = typer.Typer(
    name="vitnas",
    help="Search and design hybrid vision transformers: accuracy against exactly counted FLOPs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    try:
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except VitnasError as error:
        _complain(str(error))
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        # typer's usage errors; their class moved between typer's versions
        message = getattr(error, "format_message", None)
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message() if message else "")
            code = 2
        elif message is None:
            if type(error).__name__ != "Abort":  # older typers' name for Ctrl-C; newer give 130
                raise
            code = 130
        else:
            _complain(message())
            code = 2
    if code == 130:
        _complain(_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from vitnas import __version__

        print(f"vitnas {__version__}")
        raise typer.Exit


@app.command()
def search(
    space: Annotated[
        str, typer.Argument(help="A space file, or a shipped one by name.")
    ] = "digits",
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
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Of stopping by learning curves.")
    ] = 0.98,
    pruner_bins: Annotated[
        int, typer.Option(min=1, help="Front ranks among trials of like FLOPs, in so many bins.")
    ] = 1,
) -> None:
    """Search SPACE until --trials trainings have ended; goes on with a stopped run."""
    _one_of("--backend", backend, ("tune", "serial"))
    _one_of("--sampler", sampler, ("ehvi", "tpe", "nsga2", "random"))
    _one_of("--pruner", pruner or "none", ("none", "front", "curve", "both"))
    if no_prune and pruner not in (None, "none"):
        from vitnas.errors import ConfigError

        raise ConfigError(f"--no-prune means --pruner none, not {pruner}; drop one")
    from vitnas import api
    from vitnas.engine.display import Display
    from vitnas.engine.options import SearchOptions

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
        run = api.search(found, out, listener=listen, notice=_complain, **options)
    _print_front(run)
    if run.ended_by:
        _complain(run.ended_by)


@app.command()
def status(
    run: Annotated[Path, typer.Argument(help="A results folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what RUN has done and is doing; also while it is searched. Needs no torch."""
    from vitnas.engine.status import read_status, status_text

    found = read_status(run)
    print(json.dumps(found.to_json(), indent=2) if as_json else status_text(found))


@app.command()
def salvage(
    run: Annotated[Path, typer.Argument(help="A results folder with a damaged study.db.")],
) -> None:
    """Save what can be read of a damaged study of RUN; the search goes on afterwards."""
    from vitnas.engine.salvage import salvage as save

    done = save(run)
    print(
        f"{run}: {done.saved} candidates saved, {done.lost} lost, {done.unfinished} to be trained "
        f"again; the damaged file is {done.damaged.name}"
    )


@app.command("space")
def show_space(
    space: Annotated[
        str, typer.Argument(help="A space file, or a shipped one by name.")
    ] = "digits",
    samples: Annotated[int, typer.Option(min=0, help="Networks to show.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print how many networks SPACE holds, what they cost, a few of them, and problems."""
    from vitnas.config.space import load_space
    from vitnas.cost.survey import survey
    from vitnas.cost.survey_text import survey_json, survey_text

    found = load_space(space)
    result = survey(found, num_samples=samples)
    if as_json:
        print(json.dumps(survey_json(found, result), indent=2))
    else:
        print(survey_text(found, result))


@app.command()
def describe(
    config: Annotated[Path, typer.Argument(help="A model file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print FLOPs and parameters of a model by stage and block kind, and what passes share."""
    from vitnas.config.model import load_config
    from vitnas.cost.description import describe_json, describe_text

    loaded = load_config(config)
    print(json.dumps(describe_json(loaded), indent=2) if as_json else describe_text(loaded))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A results folder.")],
) -> None:
    """Rebuild tables, plots and report of RUN from its study; needs neither torch nor Ray."""
    from vitnas.api import load_run
    from vitnas.report import write_report

    loaded = load_run(run)
    write_report(loaded)
    _print_front(loaded)


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
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Of stopping by learning curves.")
    ] = 0.98,
    pruner_bins: Annotated[
        int, typer.Option(min=1, help="Front ranks among trials of like FLOPs, in so many bins.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    record: Annotated[
        Path | None, typer.Option(help="Write RUN's curves as a table's file instead.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw hypervolume against epochs, too: a PNG to write.")
    ] = None,
) -> None:
    """Search recorded curves instead of training: samplers and pruners compared."""
    from vitnas.engine import comparison, tables
    from vitnas.engine.pruning import PRUNERS
    from vitnas.engine.resources import cores
    from vitnas.engine.samplers import SAMPLERS

    for name in sampler or ():
        _one_of("--sampler", name, SAMPLERS)
    for name in pruner or ():
        _one_of("--pruner", name, PRUNERS)
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


@app.command("export")
def export_command(
    run: Annotated[Path, typer.Argument(help="A results folder.")],
    to: Annotated[Path, typer.Option(help="Folder to write; new or empty.")],
    trial: Annotated[int | None, typer.Option(help="This trial.")] = None,
    under: Annotated[
        str | None, typer.Option(help="The best of the front under these FLOPs, e.g. 2M.")
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="The knee of the front.")] = False,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Train anew for so many epochs.")
    ] = None,
) -> None:
    """Write a network of RUN as config.yaml, model.safetensors and README.md."""
    from vitnas import api

    loaded = api.load_run(run)
    folder = api.export(loaded, to, trial=trial, under=under, knee=knee, epochs=epochs)
    print(f"{folder}: load it with vitnas.load('{folder}')")


@app.command()
def train(
    model: Annotated[str, typer.Argument(help="A model of the zoo, a model file or a folder.")],
    to: Annotated[Path, typer.Option(help="Folder to write; new or empty.")],
    data: Annotated[
        str, typer.Option(help="digits, cifar10:/data/cifar, or a folder with train/<class>/.")
    ] = "digits",
    recipe: Annotated[str, typer.Option(help="A recipe's name or file.")] = "small",
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")] = None,
    img_size: Annotated[
        int | None, typer.Option(min=1, help="Pixels a side; default the model's.")
    ] = None,
    init_from: Annotated[
        Path | None, typer.Option(help="A folder whose weights come first; resized if need be.")
    ] = None,
    teacher: Annotated[
        str | None, typer.Option(help="A folder or a timm model to learn from; no labels.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the training.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    workers: Annotated[int, typer.Option(min=0, help="Processes that read image files.")] = 0,
) -> None:
    """Train MODEL by a recipe; the same command goes on with a stopped training."""
    from vitnas import api

    options = {"epochs": epochs, "img_size": img_size, "teacher": teacher, "init_from": init_from}
    folder = api.train(
        model,
        to,
        data=data,
        recipe=recipe,
        device=device,
        workers=workers,
        listener=_print_epoch,
        notice=_print_now,
        seed=seed,
        **options,
    )
    print(f"{folder}: load it with vitnas.load('{folder}')")


@app.command()
def diagnose(
    model: Annotated[
        str, typer.Argument(help="A name of the zoo or timm, a model file, or a folder.")
    ],
    data: Annotated[
        str | None, typer.Option(help="A data set's name, a folder of images or a space file.")
    ] = None,
    images: Annotated[int, typer.Option(min=4, help="Images to show it.")] = 256,
    out: Annotated[
        Path | None, typer.Option(help="Folder; default results/diagnose/<name>.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="Of similarity,features,heads,cka,distance,rollout,lrc; default all."),
    ] = None,
    trial: Annotated[int | None, typer.Option(help="Of a results folder: this trial.")] = None,
    weights: Annotated[
        str | None, typer.Option(help="A safetensors file for a named model; default random.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="A training's log.jsonl; default the folder's own.")
    ] = None,
    tau: Annotated[
        float, typer.Option(min=-1.0, max=1.0, help="Cosine of similar attention vectors.")
    ] = 0.5,
    image: Annotated[int, typer.Option(min=0, help="Which of the images rollout is for.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of random weights and of the images.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """Look into MODEL: attention maps, features, residual coefficients; figures and numbers."""
    from vitnas import api

    result, folder = api.diagnose(
        model,
        data,
        out=out,
        only=only,
        images=images,
        trial=trial,
        weights=weights,
        seed=seed,
        device=device,
        tau=tau,
        image=image,
        log=log,
    )
    print(result.text())
    print(f"{folder}: {len(result.figures)} figures and diagnosis.json")


@app.command()
def convert(
    checkpoint: Annotated[Path, typer.Argument(help="A .pth, .pt or .safetensors file.")],
    layout: Annotated[
        str, typer.Option("--from", help="Whose: sret, deepvit, bvit, ska, caformer or timm.")
    ],
    to: Annotated[Path, typer.Option(help="Folder to write; new or empty.")],
    model: Annotated[
        str | None,
        typer.Option(help="A model of the zoo, or a model file; default by the shapes."),
    ] = None,
    img_size: Annotated[
        int | None, typer.Option(min=1, help="Pixels a side, where the weights do not say it.")
    ] = None,
) -> None:
    """Write weights of a paper's own code, or of timm, as a folder that vitnas.load reads."""
    from vitnas.export.convert import convert as to_folder

    done = to_folder(checkpoint, layout, to, model=model, img_size=img_size)
    print(done.text())
    print(f"{done.folder}: load it with vitnas.load('{done.folder}')")


@app.command("graft")
def graft_command(
    model: Annotated[
        str | None, typer.Argument(help="A network of timm's, or of SKA's Table 1.")
    ] = None,
    mixer: Annotated[str | None, typer.Option(help="ska or cska: what replaces attention.")] = None,
    blocks: Annotated[
        str, typer.Option(help="Where: all, last:4, stages:2,3, 6-11 or 0,2,4-6.")
    ] = "all",
    reattention: Annotated[
        int, typer.Option(min=0, help="The last so many attentions mix their maps.")
    ] = 0,
    gamma: Annotated[float, typer.Option(min=0.0, help="Weight of broad attention.")] = 0.0,
    img_size: Annotated[int | None, typer.Option(min=1, help="Pixels a side.")] = None,
    patch_size: Annotated[int | None, typer.Option(min=1, help="Pixels of a patch.")] = None,
    num_classes: Annotated[int | None, typer.Option(min=1, help="Classes.")] = None,
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="With timm's weights, from its hub.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of random weights and static keys.")] = 0,
    to: Annotated[Path | None, typer.Option(help="Folder to write; new or empty.")] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Print SKA's Table 1: printed and built sizes.")
    ] = False,
) -> None:
    """Replace the attention of MODEL, or add to it; print what changed and what it costs."""
    if table:
        from vitnas.cost.small_scale import small_scale_table

        print(small_scale_table(), end="")
        return
    from vitnas.export.grafts import graft_named

    fields = {"mixer": mixer, "blocks": blocks, "reattention_blocks": reattention}
    options = {"img_size": img_size, "patch_size": patch_size, "num_classes": num_classes}
    made = graft_named(
        model or "",
        {**fields, "broad": {"gamma": gamma}},
        {name: value for name, value in options.items() if value is not None},
        pretrained=pretrained,
        seed=seed,
        to=to,
    )
    print(made.text())
    if to is not None:
        print(f"{to}: load it with vitnas.load('{to}')")


@app.command()
def zoo(
    name: Annotated[str | None, typer.Argument(help="A model of the papers.")] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Print docs/published.md: printed and built sizes.")
    ] = False,
) -> None:
    """List the papers' models with their sizes, or print the model file of NAME."""
    from vitnas.nn.zoo import zoo_text
    from vitnas.nn.zoo.table import published_page, zoo_list

    if name is not None:
        print(zoo_text(name), end="")
    else:
        print(published_page() if table else zoo_list(), end="" if table else "\n")


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(help="model, space or recipe")] = "space",
) -> None:
    """Print the JSON schema of model, space or recipe files, for editors."""
    _one_of("KIND", kind, ("model", "space", "recipe"))
    from vitnas.config.schema import model_schema, recipe_schema, space_schema

    kinds = {"model": model_schema, "space": space_schema, "recipe": recipe_schema}
    print(json.dumps(kinds[kind](), indent=2))


def _print_now(line: str) -> None:
    print(line, flush=True)


def _print_epoch(entry: dict[str, Any]) -> None:
    epoch = f"epoch {entry['epoch']:>{len(str(entry['epochs']))}}/{entry['epochs']}"
    scores = f"loss {entry['loss']:.4f}  top-1 {entry['top1']:.2f} %  lr {entry['lr']:.2e}"
    print(f"{epoch}  {scores}  {entry['seconds']:.1f} s", flush=True)


def _complain(line: str) -> None:
    print(f"vitnas: {line}", file=sys.stderr)


def _one_of(what: str, value: str, known: Sequence[str]) -> None:
    from vitnas.errors import ConfigError, nearest_name

    if value not in known:
        rule = f"must be {' or '.join(known)}"
        raise ConfigError(rule, address=what, value=value, nearest=nearest_name(value, known))


def _print_front(run: Run) -> None:
    from vitnas.report import front_text

    print(front_text(run))
    print(f"report: {run.path / 'report.html'}")


if __name__ == "__main__":
    main()
