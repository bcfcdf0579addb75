"""`vitnas diagnose`: figures and numbers of what is inside a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitnas.cli.app import MOST, Device, app
from vitnas.cli.streams import complain, say


@app.command()
def diagnose(
    model: Annotated[
        str, typer.Argument(help="A name of the zoo or timm, a model file, or a folder.")
    ],
    data: Annotated[
        str | None, typer.Option(help="A data set's name, a folder of images or a space file.")
    ] = None,
    images: Annotated[
        int, typer.Option(min=4, max=MOST["images"], help="How many images it sees.")
    ] = 256,
    out: Annotated[
        Path | None, typer.Option(help="Folder; default results/diagnose/<name>.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="Some of maps,similarity,features,heads,cka,distance,rollout,responses,theta,"
            "lrc,landscape; default all but landscape."
        ),
    ] = None,
    trial: Annotated[
        int | None, typer.Option(help="Number of a trial, if MODEL is a results folder.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="A safetensors file for a named model; default random.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="A training's log.jsonl; default the folder's own.")
    ] = None,
    tau: Annotated[
        float,
        typer.Option(min=-1.0, max=1.0, help="Attention vectors are similar from this cosine on."),
    ] = 0.5,
    image: Annotated[
        int,
        typer.Option(min=0, max=MOST["image"], help="The image of maps, rollout and responses."),
    ] = 0,
    map_images: Annotated[
        int,
        typer.Option(help="How many images maps shows, from --image on: 1 to 8."),
    ] = 1,
    points: Annotated[
        int,
        typer.Option(min=3, max=MOST["points"], help="Points on each side of landscape, odd."),
    ] = 21,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST["seed"],
            help="Seed of random weights, of the images and of landscape's directions.",
        ),
    ] = 0,
    suggest: Annotated[
        str | None,
        typer.Option(help="reattention: with how many such blocks a search may start."),
    ] = None,
    device: Device = "auto",
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
        map_images=map_images,
        points=points,
        log=log,
        suggest=suggest,
        notice=complain,
    )
    say(result.text())
    if result.suggestion is not None:
        say(result.suggestion.text(model, folder))
    say(f"{folder}: {len(result.figures)} figures and diagnosis.json")
