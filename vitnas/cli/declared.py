"""The options of a search on the command line, made from their declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, Literal, get_origin

import typer

from vitnas.engine.options import check, declared


def with_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose `**options` are the options of a search."""
    whole = inspect.signature(command, eval_str=True)
    own = [p for p in whole.parameters.values() if p.kind is not p.VAR_KEYWORD]
    signature = whole.replace(parameters=[*own, *map(_parameter, declared())])

    @wraps(command)
    def called(**values: Any) -> None:
        missing = [name for name in declared() if values[name] is None]
        command(**{name: value for name, value in values.items() if name not in missing})

    called.__signature__ = signature  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return called


def search_option(name: str) -> Any:
    """What typer has to know of an option of a search."""
    kind, _, option = declared()[name]

    flag = f"--{name.replace('_', '-')}"

    def checked(value: Any) -> Any:
        if value is not None:
            check({name: value}, lambda address: flag)
        return value

    return typer.Option(*([flag] if kind is bool else []), help=option.text(), callback=checked)


def _parameter(name: str) -> inspect.Parameter:
    kind, default, _ = declared()[name]
    if get_origin(kind) is Sequence:
        kind, default = list[str] | None, None
    elif get_origin(kind) is Literal:
        kind = str
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, search_option(name)],
    )
