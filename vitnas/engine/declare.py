"""How options are declared: once, for the command line, for Python and for the docstring.

A class of options is a frozen dataclass whose fields are `Annotated[type, Option(...)]`. The module
stays light: `vitnas --help` reads such classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_type_hints

from vitnas.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel

_TOLD = 10_000


@dataclass(frozen=True)
class Option:
    """What is said of an option beside its type and its default.

    Attributes:
        help: what it does; units; what None means.
        least, most: the range of a number, ends included; None = no bound.
    """

    help: str
    least: float | None = None
    most: float | None = None

    def text(self) -> str:
        """The help with the range; very large upper ends are left out."""
        ends = f" [from {self.least:g}" if self.least is not None else ""
        if self.most is not None and self.most <= _TOLD:
            ends += f" to {self.most:g}"
        return self.help + ends + "]" * bool(ends)


class Declared(NamedTuple):
    """An option with its type and its default."""

    kind: Any
    default: Any
    option: Option


class Options:
    """Base of a class of options."""

    @staticmethod
    def check_more(values: Mapping[str, Any]) -> None:
        """Make sure of what types and ranges do not say.

        Raises:
            ConfigError: addressed by the option's name.
        """


Workers = Annotated[
    int | None, Option("Trainings at a time; default one a core or GPU.", 1, 10_000)
]
GpusPerTrial = Annotated[
    float | None,
    Option("GPUs, or a share of one, for each training; default 1 with CUDA, else 0.", 0, 1024),
]
BackendName = Annotated[
    Literal["tune", "serial"], Option("tune (Ray Tune) or serial (this process).")
]
RayAddress = Annotated[
    str | None,
    Option("A running Ray cluster: auto or host:port; default: Ray starts on this machine."),
]


def declared(owner: type[Options]) -> Mapping[str, Declared]:
    """The options of a class by name."""
    hashable: Any = owner  # mypy takes a class's `__hash__` for its instances'
    return _declared(hashable)


@cache
def _declared(owner: type[Any]) -> Mapping[str, Declared]:
    hints = get_type_hints(owner, include_extras=True)
    return {
        field.name: Declared(
            hints[field.name].__origin__, field.default, hints[field.name].__metadata__[0]
        )
        for field in fields(owner)
    }


def check(
    owner: type[Options], values: Mapping[str, Any], spell: Callable[[str], str] = str
) -> None:
    """Make sure that options exist and that their values are valid.

    Args:
        owner: the class of options.
        values: by name.
        spell: how an error spells the name of an option.

    Raises:
        ConfigError: the first that is not; names the nearest valid name or value.
    """
    from vitnas.config.files import validate

    try:
        hashable: Any = owner
        validate(_schema(hashable), dict(values))
        owner.check_more(values)
    except ConfigError as error:
        rule = error.rule.replace("unknown key", "there is no such option")
        raise ConfigError(
            rule, address=spell(error.address), value=error.value, nearest=error.nearest
        ) from None


@cache
def _schema(owner: type[Any]) -> type[BaseModel]:
    """The declaration as a pydantic model."""
    from pydantic import Field, create_model

    from vitnas.config.parts import Frozen

    found: dict[str, Any] = {
        name: (kind, Field(default, ge=option.least, le=option.most))
        for name, (kind, default, option) in declared(owner).items()
    }
    return create_model(owner.__name__, __base__=Frozen, **found)


def documented(owner: type[Options]) -> str:
    """The docstring of a class of options with a line for each of them."""
    lines = (f"    {name}: {option.text()}" for name, (_, _, option) in declared(owner).items())
    return f"{cleandoc(owner.__doc__ or '')}\n\nAttributes:\n" + "\n".join(lines)
