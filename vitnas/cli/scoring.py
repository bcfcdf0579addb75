"""Commands that use a trained network: evaluate, predict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitnas.cli.app import MOST, Device, Json, app
from vitnas.cli.streams import complain, say

if TYPE_CHECKING:
    from vitnas.scoring.predict import Prediction

Model = Annotated[
    str, typer.Argument(help="A folder, a .onnx or .pt2 file, or a timm model's name.")
]
Threads = Annotated[
    int, typer.Option(min=1, max=MOST["threads"], help="Of the CPU, that the network takes.")
]
_MOST_AT_ONCE = 65_536  # images in a batch


@app.command()
def evaluate(
    model: Model,
    data: Annotated[
        str, typer.Option(help="digits, cifar10:/data/cifar, or a folder of images by class.")
    ],
    score_on: Annotated[str, typer.Option(help="test or val: which images.")] = "test",
    weights: Annotated[
        str | None, typer.Option(help="A safetensors file for a timm model; default timm's own.")
    ] = None,
    batch_sizes: Annotated[
        str, typer.Option(help="Of these the images a second are measured; or none.")
    ] = "1,32",
    threads: Threads = 1,
    device: Device = "auto",
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print each class as CSV.")] = False,
) -> None:
    """Score MODEL on labelled images: top-1, top-5, each class, confusion, calibration, speed."""
    _check_one_form(as_json, as_csv)
    sizes = () if as_csv else _sizes(batch_sizes)
    _take(threads)
    from vitnas import api

    options: dict[str, Any] = {"score_on": score_on, "weights": weights, "device": device}
    found = api.evaluate(model, data, batch_sizes=sizes, **options)
    from vitnas.scoring.text import classes_csv, evaluation_json, evaluation_text

    if as_csv:
        say(classes_csv(found), end="")
    else:
        say(json.dumps(evaluation_json(found), indent=2) if as_json else evaluation_text(found))


@app.command()
def predict(
    model: Model,
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")],
    top: Annotated[
        int, typer.Option(min=1, max=MOST["num_classes"], help="How many classes are named.")
    ] = 1,
    threads: Threads = 1,
    device: Device = "auto",
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Print what MODEL sees in image files, in their order; a file that is no image is skipped."""
    _check_one_form(as_json, as_csv)
    from vitnas import api
    from vitnas.scoring.images import listed
    from vitnas.scoring.text import predictions_csv, predictions_json, predictions_text

    _take(threads)
    paths = listed(images)
    failed: list[Path] = []
    answers = api.predict(model, paths, top=top, device=device, notice=complain)
    found = _named(answers, failed)
    if as_json:
        lines = predictions_json(found)
    else:
        lines = predictions_csv(found) if as_csv else predictions_text(found, paths)
    for line in lines:
        say(line, flush=True)
    if failed:
        raise typer.Exit(2)


def _take(threads: int) -> None:
    """Several threads on busy cores wait for each other: one, unless somebody asks for more."""
    import torch

    torch.set_num_threads(threads)


def _named(found: Iterator[Prediction], failed: list[Path]) -> Iterator[Prediction]:
    """The same, with a line for each file that cannot be read; these are added to `failed`."""
    from vitnas.config.files import exists

    for one in found:
        if one.problem is not None:
            is_there, why = exists(one.file), f"not a readable image ({one.problem})"
            complain(f"{one.file}: {why if is_there else 'there is no such file or folder'}")
            failed.append(one.file)
        yield one


def _check_one_form(as_json: bool, as_csv: bool) -> None:
    from vitnas.errors import VitnasError

    if as_json and as_csv:
        raise VitnasError("--json and --csv: take one of the two")


def _sizes(text: str) -> tuple[int, ...]:
    """`"1,32"` -> `(1, 32)`; `none` -> `()`."""
    from vitnas.errors import ConfigError

    asked = [] if text == "none" else text.split(",")
    if not all(size.strip().isdecimal() and 1 <= int(size) <= _MOST_AT_ONCE for size in asked):
        rule = f"must be numbers from 1 to {_MOST_AT_ONCE} with commas between, or none"
        raise ConfigError(rule, address="--batch-sizes", value=text, nearest="1,32")
    return tuple(dict.fromkeys(map(int, asked)))
