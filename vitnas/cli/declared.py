"""Options on the command line, made from their declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from vitnas.engine.declare import Options, check, declared

_Command = Callable[..., None]


def with_options(owner: type[Options]) -> Callable[[_Command], _Command]:
    """Makes a command whose `**options` are the options of a class."""

    def made(command: _Command) -> _Command:
        whole = inspect.signature(command, eval_str=True)
        own = [p for p in whole.parameters.values() if p.kind is not p.VAR_KEYWORD]
        declarations = [_parameter(owner, name) for name in declared(owner)]
        signature = whole.replace(parameters=[*own, *declarations])

        @wraps(command)
        def called(**values: Any) -> None:
            missing = [name for name in declared(owner) if values[name] is None]
            command(**{name: value for name, value in values.items() if name not in missing})

        called.__signature__ = signature  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        return called

    return made


def option_of(owner: type[Options], name: str) -> Any:
    """What typer has to know of one of these options."""
    kind, default, option = declared(owner)[name]
    flag = f"--{name.replace('_', '-')}"
    spellings = [f"{flag}/--no-{flag[2:]}" if default else flag] if kind is bool else []

    def checked(value: Any) -> Any:
        if value is not None:
            check(owner, {name: value}, lambda address: flag)
        return value

    return typer.Option(*spellings, help=option.text(), callback=checked)


def _parameter(owner: type[Options], name: str) -> inspect.Parameter:
    kind, default, _ = declared(owner)[name]
    if get_origin(kind) is Sequence:
        numbers = get_args(kind) == (int,)
        kind, default = list[int] | None if numbers else list[str] | None, default or None
    elif get_origin(kind) is Literal:
        kind = str
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option_of(owner, name)],
    )
