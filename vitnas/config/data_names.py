"""Images by what a user calls them, as after `--data`."""

from __future__ import annotations

from pathlib import Path

from vitnas.config.data import DATA_FACTS, GROUP, DataConfig
from vitnas.config.files import exists, validate
from vitnas.config.space import load_space
from vitnas.errors import ConfigError, nearest_name
from vitnas.plugins import announced, is_path


def read_data(text: str) -> DataConfig:
    """`digits`, `cifar10:/data/cifar`, the folder of an `imagefolder`, another package's data set
    by its name (and a folder) or path, or a space file, for its `data` -> its configuration.

    Raises:
        ConfigError: none of these.
    """
    name, _, root = text.partition(":")
    names = [*DATA_FACTS, *announced(GROUP)]
    if name in names:
        return validate(DataConfig, {"name": name, "root": root or None})
    if exists(text) and Path(text).is_dir():
        return validate(DataConfig, {"name": "imagefolder", "root": text})
    if Path(text).suffix in (".yaml", ".yml"):
        return load_space(text).config.data
    if is_path(text):
        return DataConfig(name=text)
    rule = "is neither a folder with train/<class>/<image>, a space file nor one of "
    rule += ", ".join(names)
    nearest = nearest_name(name, names)
    raise ConfigError(rule, address="data", value=text, nearest=nearest)
