"""The network of an exported folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.errors import ConfigError, DataError
from vitnas.exported.design import file_of, network_of, read_design
from vitnas.exported.folder import CLASSES_FILE, WEIGHTS_FILE, read_classes
from vitnas.exported.hub import check_weights, read_preprocessing, tell_timm

if TYPE_CHECKING:
    from torch import nn


def load(folder: str | Path) -> nn.Module:
    """The network of an exported folder with its weights, in eval mode on the CPU.

    A folder with a graft.yaml is a timm network with grafts. It says its `image_hw` and `in_chans`,
    as other networks do. A network whose folder has a config.json says in `pretrained_cfg` how its
    images are prepared: `timm.data.resolve_model_data_config` reads it, and
    `timm.models.save_for_hf` saves the network (of a baseline, it does not). One whose classes have
    names has them in `label_names`, a tuple in the order of its outputs.

    Raises:
        ConfigError: the network's YAML file is missing or wrong, or the weights belong to another
            network; the error names the first tensor that does not fit.
        DataError: model.safetensors is missing, unreadable or damaged, holds numbers that are not
            finite, or is not the one that config.json was written with; or labels.txt has another
            number of names than the network has outputs.
    """
    folder = Path(folder)
    design = read_design(folder)
    try:
        model: Any = network_of(design, folder / WEIGHTS_FILE)
    except ConfigError as error:
        raise (error if error.file else error.at(file=folder / file_of(design))) from None
    check_weights(folder)
    if names := read_classes(folder):
        if len(names) != model.num_classes:
            rule = f"{len(names)} names for {model.num_classes} classes"
            raise DataError(f"{folder / CLASSES_FILE}: {rule}")
        model.label_names = names
    if how := read_preprocessing(folder, design.in_chans):  # of the training, not timm's weights
        tell_timm(model, design, how)
    network: nn.Module = model
    return network
