"""What other packages add to vitnas: objects that they announce, or that a file names by a path.

A package announces an object as an entry point: a name in a group such as `vitnas.mixers`. A path
is `package.module:Name`. Both lead to an import, and an import runs the code of that module. So
nothing here imports before `load` is called, and inside `closed()` nobody calls it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

from vitnas.errors import ConfigError, nearest_name

PATH = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
"""A pattern of paths `package.module:Name`."""
_CLOSED: ContextVar[bool] = ContextVar("closed", default=False)


@cache
def announced(group: str) -> dict[str, str]:
    """The names that installed packages announce in `group`, each with its path.

    Of two packages that announce the same name the first one in alphabetical order has it.
    """
    from importlib.metadata import entry_points  # slow, and `vitnas --help` does without

    found = sorted(
        (point.name, point.value.partition("[")[0]) for point in entry_points(group=group)
    )
    return {name: path.replace(" ", "") for name, path in reversed(found)}


def path_of(
    name: str, group: str, own: Iterable[str] = (), *, what: str = "name", address: str = ""
) -> str:
    """The path that `name` stands for: an announced name's, or `name` itself. Imports nothing.

    Args:
        name: what a user wrote.
        group: where packages announce such names.
        own: names that vitnas itself has; for the nearest one.
        what: what kind of thing `name` names; for the error.
        address: where it stands; for the error.

    Raises:
        ConfigError: no package announces the name, or it is not the path of a class.
    """
    if ":" not in name:
        known = announced(group)
        if name in known:
            return known[name]
        names = [*own, *known]
        nearest = nearest_name(name, names)
        rule = f"no such {what}" + ("" if nearest else f"; known are {', '.join(names)}")
        raise ConfigError(rule, address=address, value=name, nearest=nearest)
    if not is_path(name):
        rule = "a path is package.module:Name, of letters, digits and _"
        raise ConfigError(rule, address=address, value=name)
    if name.startswith("__main__:"):
        rule = "workers cannot import a script: put the class into a file of its own"
        raise ConfigError(rule, address=address, value=name)
    return name


def is_path(name: str) -> bool:
    """Whether `name` is spelled as `package.module:Name`."""
    return re.fullmatch(PATH, name) is not None


def why_missing(path: str) -> str | None:
    """Why `package.module:Name` cannot be had where its package is not installed; None where it is.
    Imports nothing."""
    from importlib.util import find_spec  # slow, and `vitnas --help` does without

    package = path.partition(":")[0].partition(".")[0]
    is_there = package in sys.modules or find_spec(package) is not None
    return None if is_there else _not_installed(package)


def load(path: str, *, address: str = "") -> Any:
    """The object at `package.module:Name`. Importing a module runs its code.

    Raises:
        ConfigError: the module is not installed or cannot be imported, or has no such name.
    """
    module_name, _, name = path.partition(":")
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:
        rule = _why_not(module_name, error)
        raise ConfigError(rule, address=address, value=path) from error
    if not hasattr(module, name):
        rule = f"the module {module_name} has no {name}"
        nearest = nearest_name(name, vars(module))
        nearest = nearest and f"{module_name}:{nearest}"
        raise ConfigError(rule, address=address, value=path, nearest=nearest)
    return getattr(module, name)


def _why_not(module: str, error: BaseException) -> str:
    package = module.partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return f"importing {module} failed: {type(error).__name__}: {error}"
    if error.name == package:
        return _not_installed(package)
    if module == error.name or module.startswith(error.name + "."):
        return f"the package {package} has no module {error.name}"
    return f"the package {package} needs {error.name}, which is not installed"


def _not_installed(package: str) -> str:
    return f"the package {package} is not installed here, nor in a folder of PYTHONPATH"


@contextmanager
def closed() -> Iterator[None]:
    """Inside, nothing is imported because a file names it: what is read may come from anybody.

    Whoever resolves names asks `is_closed` and takes what needs no import.
    """
    token = _CLOSED.set(True)
    try:
        yield
    finally:
        _CLOSED.reset(token)


def is_closed() -> bool:
    """Whether the caller is inside `closed()`."""
    return _CLOSED.get()
