"""Options on the command line are made from their declaration."""

from __future__ import annotations

from dataclasses import fields

import typer.main

from vitnas.cli import app
from vitnas.engine.declare import declared
from vitnas.engine.options import SearchOptions
from vitnas.engine.samplers import SAMPLERS


def test_the_command_line_has_every_option_with_its_default_and_range() -> None:
    command = typer.main.get_command(app).commands["search"]  # type: ignore[attr-defined]
    shown = {parameter.name: parameter for parameter in command.params}
    for name, (_, default, option) in declared(SearchOptions).items():
        assert shown[name].help == option.text()
        assert shown[name].default == (default if default != () else None), name
        assert name in (SearchOptions.__doc__ or "")
    assert set(shown) - set(declared(SearchOptions)) == {"space", "data", "out", "no_prune"}
    assert set(declared(SearchOptions)) == {field.name for field in fields(SearchOptions)}


def test_the_help_says_what_each_sampler_does() -> None:
    help_text = declared(SearchOptions)["sampler"].option.text()
    for name, kind in SAMPLERS.items():
        assert f"{name} ({kind.text})" in help_text
