"""Commands about files and names: space, describe, zoo, schema. Nothing is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from vitnas.cli.app import MOST, Images, Json, SpaceName, app, one_of
from vitnas.cli.streams import say


@app.command("space")
def show_space(
    space: SpaceName = "digits",
    data: Images = None,
    samples: Annotated[int, typer.Option(min=0, max=MOST["samples"], help="Networks to show.")] = 5,
    as_json: Json = False,
) -> None:
    """Print how many networks SPACE holds, what they cost, a few of them, what a search reads of
    an image folder, and problems."""
    from vitnas.config.data_names import read_data
    from vitnas.config.space import load_space
    from vitnas.cost.survey import survey
    from vitnas.cost.survey_text import survey_json, survey_text
    from vitnas.errors import DataError

    found = load_space(space, None if data is None else read_data(data, trains=True))
    from vitnas.data.reading import reading_of  # numpy and Pillow, which a mistake above spares

    asked, images, result = found.config, None, survey(found, num_samples=samples)
    try:
        images = reading_of(asked.data, found.image_sizes(), asked.proxy.train_fraction)
    except DataError as error:
        result = replace(result, problems=(*result.problems, str(error)))
    if as_json:
        told = {"images": None if images is None else images.told()}
        say(json.dumps(survey_json(found, result) | told, indent=2))
    else:
        say(survey_text(found, result, () if images is None else images.lines()))


@app.command()
def describe(
    model: Annotated[
        Path, typer.Argument(help="A model file, an exported folder or a model of the papers.")
    ],
    as_json: Json = False,
) -> None:
    """Print FLOPs and parameters of MODEL by stage and block kind, and what passes share."""
    from vitnas.config.model import ModelConfig, load_config
    from vitnas.cost.description import describe_json, describe_text
    from vitnas.errors import ConfigError
    from vitnas.exported.design import file_of, read_design
    from vitnas.nn.zoo import zoo_config

    if model.is_dir():
        loaded = read_design(model)
        if not isinstance(loaded, ModelConfig):
            rule = "is no network of vitnas's own stages; its README.md has its size"
            raise ConfigError(rule, file=model / file_of(loaded))
    elif model.exists() or model.suffix in (".yaml", ".yml") or model.name != str(model):
        loaded = load_config(model)
    else:
        loaded = zoo_config(str(model))
    say(json.dumps(describe_json(loaded), indent=2) if as_json else describe_text(loaded))


@app.command()
def zoo(
    name: Annotated[str | None, typer.Argument(help="A model of the papers.")] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Print docs/published.md: printed and built sizes.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the printed top-1 against the sizes: a .png or .svg to write."),
    ] = None,
) -> None:
    """List the papers' models with their sizes, or print the model file of NAME."""
    from vitnas.nn.zoo import zoo_text
    from vitnas.nn.zoo.table import published_page, zoo_list

    if plot is not None:
        _plot(plot, "NAME" if name is not None else "--table" if table else None)
    elif name is not None:
        say(zoo_text(name), end="")
    else:
        say(published_page() if table else zoo_list(), end="" if table else "\n")


def _plot(file: Path, other: str | None) -> None:
    from vitnas.errors import ConfigError
    from vitnas.nn.zoo.accuracies import points
    from vitnas.nn.zoo.picture import write_accuracy_figure

    if other:
        raise ConfigError(
            f"draws all models and prints nothing else; drop {other}", address="--plot"
        )
    write_accuracy_figure(file)
    networks = len({point.name for point in points()})
    say(f"{file}: {len(points())} printed accuracies of {networks} networks")


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(help="model, space, recipe or fields")] = "space",
) -> None:
    """Print the JSON schema of model, space or recipe files; `fields` prints tables of fields."""
    one_of("KIND", kind, ("model", "space", "recipe", "fields"))
    if kind == "fields":
        from vitnas.config.tables import fields_page

        say(fields_page(), end="")
        return
    from vitnas.config.schema import model_schema, recipe_schema, space_schema

    kinds = {"model": model_schema, "space": space_schema, "recipe": recipe_schema}
    say(json.dumps(kinds[kind](), indent=2))
