"""`vitnas deploy-check`: where trained networks will run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vitnas.cli.app import Json, app
from vitnas.cli.streams import complain, say


@app.command("deploy-check")
def deploy_check(
    subject: Annotated[
        str, typer.Argument(metavar="DIR|RUN", help="An exported folder, or a results folder.")
    ],
    data: Annotated[
        str | None,
        typer.Option(help="digits, cifar10:/data/cifar, or a folder of images; of a run its own."),
    ] = None,
    score_on: Annotated[str, typer.Option(help="test or val: which images.")] = "test",
    trial: Annotated[
        list[int] | None,
        typer.Option(help="Of a run: this trial in place of the front; repeatable."),
    ] = None,
    as_json: Json = False,
    to: Annotated[
        Path | None, typer.Option(help="Write the tables as a Markdown page, too: a .md file.")
    ] = None,
) -> None:
    """Measure onnxruntime's speed, int8 and fp16 of DIR or RUN, and list what delegates refuse."""
    from vitnas import api
    from vitnas.deploy.text import check_markdown, check_text, is_page
    from vitnas.environment import command_line
    from vitnas.files import check_replaceable, write_text, writing

    if to is not None:
        check_replaceable(to, is_page)
    found = api.deploy_check(subject, data, score_on=score_on, trials=trial or (), notice=complain)
    say(json.dumps(found.to_json(), indent=2) if as_json else check_text(found))
    if to is not None:
        with writing(to):
            write_text(to, check_markdown(found, command_line()))
    if to is not None and not as_json:
        say(f"{to}: the same as a page")
