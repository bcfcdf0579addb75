"""Commands that make a network or look into one: export, train, convert, graft, diagnose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vitnas.cli.app import MOST, Device, NewFolder, RunFolder, app, print_folder
from vitnas.cli.streams import in_turn, say
from vitnas.cores import launch
from vitnas.errors import ConfigError, typed

Formats = Annotated[
    str,
    typer.Option(help="Files that run without vitnas: of py, pt2 and onnx, with commas; or none."),
]


@app.command("export")
def export_command(
    run: RunFolder,
    to: NewFolder,
    trial: Annotated[int | None, typer.Option(help="Number of the trial.")] = None,
    under: Annotated[
        str | None, typer.Option(help="The best of the front under these FLOPs, e.g. 2M.")
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="The knee of the front.")] = False,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=MOST["epochs"], help="Train again for this many epochs."),
    ] = None,
    formats: Formats = "py,pt2,onnx",
) -> None:
    """Write a network of RUN: its configuration, its weights, and files that run without vitnas."""
    from vitnas import api
    from vitnas.exported.write import parse_formats

    asked = parse_formats(formats)
    loaded = api.load_run(run)
    chosen: dict[str, Any] = {"trial": trial, "under": under, "knee": knee}
    folder = api.export(loaded, to, **chosen, epochs=epochs, formats=asked, notice=_print_now)
    print_folder(folder)


@app.command()
def train(
    to: NewFolder,
    model: Annotated[
        str | None, typer.Argument(help="A model of the zoo, a model file or a folder.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--for", help="Train a network of this run; the result goes into it, too."),
    ] = None,
    trial: Annotated[int | None, typer.Option(help="Number of the trial, with --for.")] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="With --for: vgg-17, or with --trial vgg, which has its FLOPs, or timm:NAME."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="digits (the default), cifar10:/data/cifar, or a folder with train/<class>/."
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="A recipe's name or file; default small, with --for the run's proxy."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, max=MOST["epochs"], help="Epochs, instead of the recipe's.")
    ] = None,
    img_size: Annotated[
        int | None,
        typer.Option(min=1, max=MOST["img_size"], help="Pixels a side; default the model's."),
    ] = None,
    init_from: Annotated[
        str | None,
        typer.Option(
            help="A folder with the first weights, of any size and classes; or timm:NAME[:FILE]."
        ),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(help="A folder or a timm model to learn from; replaces the labels."),
    ] = None,
    score_on: Annotated[
        str | None,
        typer.Option(help="val or test: these images score, and none is held out of train."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MOST["seed"], help="Seed of the training.")] = 0,
    device: Device = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST["threads"], help="Of the CPU; default 1, and beside a GPU all cores."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, max=MOST["workers"], help="Processes that read image files.")
    ] = 0,
    formats: Formats = "py",
    track: Annotated[
        list[str] | None,
        typer.Option(help="Log to csv, tensorboard, wandb or mlflow, too; may be repeated."),
    ] = None,
) -> None:
    """Train MODEL by a recipe; the same command resumes a stopped training."""
    from vitnas import api
    from vitnas.exported.write import parse_formats

    options: dict[str, Any] = {
        "epochs": epochs,
        "img_size": img_size,
        "teacher": teacher,
        "init_from": init_from,
    }
    options |= {"score_on": score_on, "formats": parse_formats(formats), "track": track or ()}
    rank = launch().rank
    with in_turn(rank):
        if run is not None:
            options["run"] = api.load_run(run)
        folder = api.train(
            model,
            to,
            trial=trial,
            baseline=baseline,
            data=data,
            recipe=recipe,
            device=device,
            threads=threads,
            workers=workers,
            listener=_print_epoch,
            notice=_print_now,
            seed=seed,
            **options,
        )
    if rank:
        return
    print_folder(folder)
    if run is not None:
        say(f"{run}: has the result; vitnas report {typed(run)} shows it")


@app.command()
def convert(
    checkpoint: Annotated[Path, typer.Argument(help="A .pth, .pt or .safetensors file.")],
    layout: Annotated[
        str,
        typer.Option(
            "--from",
            help="Whose code wrote it: sret, deepvit, bvit, ska, ska_small, caformer or timm.",
        ),
    ],
    to: NewFolder,
    model: Annotated[
        str | None,
        typer.Option(help="A model of the zoo, or a model file; default by the shapes."),
    ] = None,
    img_size: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST["img_size"], help="Pixels a side, if the weights do not tell."
        ),
    ] = None,
    formats: Formats = "py",
) -> None:
    """Write weights of a paper's own code, or of timm, as a folder that vitnas.load reads."""
    from vitnas.exported.convert import convert as to_folder
    from vitnas.exported.write import parse_formats

    how: dict[str, Any] = {"formats": parse_formats(formats), "notice": _print_now}
    done = to_folder(checkpoint, layout, to, model=model, img_size=img_size, **how)
    say(done.text())
    print_folder(done.folder)


@app.command("graft")
def graft_command(
    model: Annotated[
        str | None, typer.Argument(help="A network of timm's, or of SKA's Table 1.")
    ] = None,
    mixer: Annotated[str | None, typer.Option(help="ska or cska: what replaces attention.")] = None,
    blocks: Annotated[
        str, typer.Option(help="Where: all, last:4, stages:2,3, 6-11 or 0,2,4-6.")
    ] = "all",
    num_heads: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST["num_heads"], help="Heads of the mixer; default as many as before."
        ),
    ] = None,
    key_kernel: Annotated[
        int,
        typer.Option(min=1, max=MOST["key_kernel"], help="Side of the kernel of cska; odd."),
    ] = 3,
    windows: Annotated[
        int,
        typer.Option(
            min=1, max=MOST["windows"], help="Windows along each side, each with its own key."
        ),
    ] = 1,
    attn_act: Annotated[
        str, typer.Option(help="softmax, or gelu, relu or star_relu in its place.")
    ] = "softmax",
    mask_diagonal: Annotated[
        bool, typer.Option("--mask-diagonal", help="No token attends to itself.")
    ] = False,
    temperature: Annotated[
        str, typer.Option(help="none, or learnable: the mixer's softmax temperature is learnt.")
    ] = "none",
    reattention: Annotated[
        int,
        typer.Option(
            min=0, max=MOST["reattention"], help="How many of the last attentions mix their maps."
        ),
    ] = 0,
    gamma: Annotated[float, typer.Option(min=0.0, help="Weight of broad attention.")] = 0.0,
    img_size: Annotated[
        int | None, typer.Option(min=1, max=MOST["img_size"], help="Pixels a side.")
    ] = None,
    patch_size: Annotated[
        int | None, typer.Option(min=1, max=MOST["patch_size"], help="Pixels of a patch.")
    ] = None,
    num_classes: Annotated[
        int | None, typer.Option(min=1, max=MOST["num_classes"], help="Classes.")
    ] = None,
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="With timm's weights, from its hub.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST["seed"], help="Seed of random weights and static keys.")
    ] = 0,
    to: Annotated[Path | None, typer.Option(help="Folder to write; new or empty.")] = None,
    formats: Formats = "none",
    table: Annotated[
        bool, typer.Option("--table", help="Print SKA's Table 1: printed and built sizes.")
    ] = False,
) -> None:
    """Replace the attention of MODEL, or add to it; print what changed and what it costs."""
    if table:
        from vitnas.cost.small_scale import small_scale_table

        say(small_scale_table(), end="")
        return
    from vitnas.exported.grafts import graft_named
    from vitnas.exported.write import parse_formats

    wanted = parse_formats(formats)
    if wanted and to is None:
        raise ConfigError("needs --to, a folder to write", address="--formats", value=formats)
    of_mixer = {"num_heads": num_heads, "key_kernel": key_kernel, "windows": windows}
    of_map = {"attn_act": attn_act, "mask_diagonal": mask_diagonal}
    fields = {"mixer": mixer, "blocks": blocks, "reattention_blocks": reattention}
    options = {"img_size": img_size, "patch_size": patch_size, "num_classes": num_classes}
    made = graft_named(
        model or "",
        {
            **fields,
            **of_mixer,
            **of_map,
            "temperature": {"kind": temperature},
            "broad": {"gamma": gamma},
        },
        {name: value for name, value in options.items() if value is not None},
        pretrained=pretrained,
        seed=seed,
        to=to,
        formats=wanted,
        notice=_print_now,
    )
    say(made.text())
    if to is not None:
        print_folder(to)


def _print_now(line: str) -> None:
    say(line, flush=True)


def _print_epoch(entry: dict[str, Any]) -> None:
    epoch = f"epoch {entry['epoch']:>{len(str(entry['epochs']))}}/{entry['epochs']}"
    scores = f"loss {entry['loss']:.4f}  top-1 {entry['top1']:.2f} %  lr {entry['lr']:.2e}"
    say(f"{epoch}  {scores}  {entry['seconds']:.1f} s", flush=True)
