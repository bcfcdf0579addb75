"""Images by what a user calls them, as after `--data`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vitnas.config.data import DATA_FACTS, GROUP, DataConfig
from vitnas.config.data_checks import check_data_there
from vitnas.config.files import is_folder, validate
from vitnas.config.space import load_space, shipped_spaces
from vitnas.errors import ConfigError, nearest_name
from vitnas.plugins import announced, is_path

_ADDRESS = "--data"


def read_data(text: str, *, trains: bool = False) -> DataConfig:
    """`digits`, `cifar10:/data/cifar`, the folder of an `imagefolder`, another package's data set
    by its name (and a folder) or path, or a space file, for its `data` -> its configuration.

    Args:
        text: what a user calls the images.
        trains: whether networks will be trained on them; see `check_data_there`.

    Raises:
        ConfigError: none of these, or it cannot be used; addressed as `--data`.
    """
    found = named_data(text)
    with _addressed(text):
        if found is None and is_folder(text):
            found = validate(DataConfig, {"name": "imagefolder", "root": text})
        if found is not None:
            if trains:
                check_data_there(found)
            return found
    names = data_names()
    rule = "is neither a folder with train/<class>/<image>, a space file nor one of "
    rule += ", ".join(names)
    nearest = nearest_name(text.partition(":")[0], names)
    raise ConfigError(rule, address=_ADDRESS, value=text, nearest=nearest)


def named_data(text: str) -> DataConfig | None:
    """As `read_data`, but None for a folder and for what is none of these; a shipped space, too.

    Raises:
        ConfigError: the space file is wrong, or the data set has no folder.
    """
    name, _, root = text.partition(":")
    with _addressed(text):
        if name in data_names():
            return validate(DataConfig, {"name": name, "root": root or None})
        if is_folder(text):
            return None
        if text in shipped_spaces() or Path(text).suffix in (".yaml", ".yml"):
            return load_space(text).config.data
        return DataConfig(name=text) if is_path(text) else None


@contextmanager
def _addressed(text: str) -> Iterator[None]:
    """Errors inside are about what a user has given, unless they are at a place in a file."""
    try:
        yield
    except ConfigError as error:
        if error.file is not None:
            raise
        address, nearest = _ADDRESS, error.nearest
        raise ConfigError(error.rule, address=address, value=text, nearest=nearest) from None


def data_names() -> list[str]:
    """Names of data sets, those of installed packages included."""
    return [*DATA_FACTS, *announced(GROUP)]
