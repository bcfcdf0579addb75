"""`vitnas data`: the cache of decoded images. Needs no torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from vitnas.cli.app import Json, app
from vitnas.cli.streams import say
from vitnas.words import plural

if TYPE_CHECKING:
    from vitnas.data.cache import HeldSet

data = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List and delete the decoded images of image folders that vitnas keeps for later runs.",
)
app.add_typer(data, name="data")


@data.command("list")
def show(as_json: Json = False) -> None:
    """Print the sets of decoded images, the one that was used last first."""
    from vitnas.columns import columns
    from vitnas.data.cache import held_sets, home, size_text

    place = home()
    found = held_sets(place)
    if as_json:
        say(json.dumps({"folder": place and str(place), "sets": [_facts(held) for held in found]}))
        return
    if found:
        rows = [["set", "images", "pixels", "size", "last used", "from"], *map(_row, found)]
        say("\n".join(columns(rows, left=(0, -1))))
    total = size_text(sum(held.size for held in found))
    say(f"{place or 'no folder'}: {plural(len(found), 'set')}, {total}")


@data.command()
def prune(
    keep: Annotated[
        str | None, typer.Option(help="Keep those used last, up to this size, e.g. 50GB.")
    ] = None,
) -> None:
    """Delete the sets that no process uses; they are made again where they are needed."""
    from vitnas.config.notation import parse_size
    from vitnas.data.cache import home, prune, size_text

    gone, used = prune(home(), parse_size(keep, "--keep") if keep else 0)
    for held in used:
        say(f"{held.images.folder}: is in use and stays")
    freed = size_text(sum(held.size for held in gone))
    say(f"{plural(len(gone), 'set')} deleted, {freed}")


def _facts(held: HeldSet) -> dict[str, object]:
    facts = held.images.facts.model_dump(mode="json")
    return {"set": held.images.folder.name, **facts, "bytes": held.size, "used": _time(held)}


def _row(held: HeldSet) -> list[str]:
    from vitnas.data.cache import size_text
    from vitnas.errors import printable

    facts = held.images.facts
    pixels, size = "{} x {}".format(*facts.image_hw), size_text(held.size)
    used = _time(held)[:16].replace("T", " ")
    name, images = held.images.folder.name, f"{facts.number:,}"
    return [name, images, pixels, size, used, printable(facts.root)]


def _time(held: HeldSet) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(held.used).astimezone().isoformat(timespec="seconds")
