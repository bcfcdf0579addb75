"""How options are declared: once, for the command line, for Python and for the docstring.

A class of options is a frozen dataclass whose fields are `Annotated[type, Option(...)]`. The module
stays light: `vitnas --help` reads such classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc, get_annotations
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


def declared(owner: type[Options]) -> Mapping[str, Declared]:
    """The options of a class by name; those of its bases come last."""
    hashable: Any = owner  # mypy takes a class's `__hash__` for its instances'
    return _declared(hashable)


@cache
def _declared(owner: type[Any]) -> Mapping[str, Declared]:
    hints = get_type_hints(owner, include_extras=True)
    names = [name for kind in owner.__mro__ for name in get_annotations(kind)]
    return {
        name: Declared(hints[name].__origin__, getattr(owner, name), hints[name].__metadata__[0])
        for name in names
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


def _documented(owner: type[Options]) -> str:
    """The docstring of a class of options with a line for each of them."""
    lines = (f"    {name}: {option.text()}" for name, (_, _, option) in declared(owner).items())
    return f"{cleandoc(owner.__doc__ or '')}\n\nAttributes:\n" + "\n".join(lines)


class Options:
    """Base of a class of options; its docstring gets a line for each of them.

    Raises:
        ConfigError: a value has the wrong type or is out of range; names the nearest valid one.
    """

    def __init_subclass__(cls) -> None:
        cls.__doc__ = _documented(cls)

    def __post_init__(self) -> None:
        check(type(self), vars(self))

    @staticmethod
    def check_more(values: Mapping[str, Any]) -> None:
        """Make sure of what types and ranges do not say.

        Raises:
            ConfigError: addressed by the option's name.
        """


@dataclass(frozen=True)
class BackendOptions(Options):
    """Where trainings run, and how many at a time."""

    workers: Annotated[
        int | None, Option("Trainings at a time; default one a core or GPU.", 1, 10_000)
    ] = None
    gpus_per_trial: Annotated[
        float | None,
        Option("GPUs, or a share of one, for each training; default 1 with CUDA, else 0.", 0, 1024),
    ] = None
    backend: Annotated[
        Literal["tune", "serial"], Option("tune (Ray Tune) or serial (this process).")
    ] = "tune"
    ray_address: Annotated[
        str | None,
        Option("A running Ray cluster: auto or host:port; default: Ray starts on this machine."),
    ] = None
