"""The network of an exported folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vitnas.config.files import read_network_yaml, validate
from vitnas.config.graft import GraftFile
from vitnas.config.model import load_config
from vitnas.errors import ConfigError, DataError
from vitnas.exported.folder import (
    CLASSES_FILE,
    CONFIG_FILE,
    GRAFT_FILE,
    WEIGHTS_FILE,
    read_classes,
)

if TYPE_CHECKING:
    from torch import nn


def load(folder: str | Path) -> nn.Module:
    """The network of an exported folder with its weights, in eval mode on the CPU.

    A folder with a graft.yaml is a grafted timm network (see `load_graft`). A network whose classes
    have names has them in `label_names`, a tuple in the order of its outputs.

    Raises:
        ConfigError: config.yaml is missing or not a model file, or the weights belong to another
            network; the error names the first tensor that does not fit.
        DataError: model.safetensors is missing, unreadable or damaged, or holds numbers that are
            not finite; or labels.txt has another number of names than the network has outputs.
    """
    from vitnas.nn.weights import network_with

    folder = Path(folder)
    if (folder / GRAFT_FILE).is_file():
        return load_graft(folder)
    config = load_config(folder / CONFIG_FILE)
    model: nn.Module = network_with(config, folder / WEIGHTS_FILE)
    if names := read_classes(folder):
        if len(names) != config.num_classes:
            rule = f"{len(names)} names for {config.num_classes} classes"
            raise DataError(f"{folder / CLASSES_FILE}: {rule}")
        model.label_names = names  # type: ignore[assignment]
    return model


def load_graft(folder: str | Path) -> nn.Module:
    """The network of a folder with a graft.yaml, with its weights, in eval mode on the CPU.

    Raises:
        ConfigError: graft.yaml is missing or wrong, or the weights belong to another network.
        DataError: model.safetensors is missing, unreadable or damaged, or holds numbers that are
            not finite.
    """
    path = Path(folder) / GRAFT_FILE
    file = validate(GraftFile, read_network_yaml(path), file=path)
    try:
        return rebuilt(file, Path(folder) / WEIGHTS_FILE)
    except ConfigError as error:
        raise (error if error.file else error.at(file=path)) from None


def rebuilt(file: GraftFile, weights: bytes | Path) -> nn.Module:
    """The network that a graft.yaml describes, with weights, in eval mode on the CPU.

    Raises:
        ConfigError: it cannot be built, or the weights belong to another network.
        DataError: the weights are missing, unreadable or damaged.
    """
    from vitnas.nn.graft import build_network, graft
    from vitnas.nn.weights import load_weights

    model = build_network(file.model, **file.options.given())
    for config in file.grafts:
        graft(model, **config.model_dump())
    load_weights(model, weights)
    return model.eval()
