"""A trained network for another image size: weights that belong to positions are interpolated.

Each part says how it is resized. All new values are computed before the first one is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.shuffle import TokenShuffle
from vitnas.nn.mixers import TokenMixer
from vitnas.nn.stage import Stage


def config_at(config: ModelConfig, img_size: Any) -> ModelConfig:
    """The same network for images of another size.

    Raises:
        ConfigError: the network cannot have this size, because the stages cannot halve it or the
            group numbers do not divide the number of tokens. The error names the nearest size.
    """
    if isinstance(img_size, (tuple, list)) and len(img_size) == 2 and img_size[0] == img_size[1]:
        img_size = img_size[0]
    return validate(ModelConfig, {**config.to_tree(), "img_size": img_size})


def layout_of(config: ModelConfig, stage: int) -> TokenLayout:
    """Grid and number of prefix tokens of a stage."""
    return TokenLayout(config.grids[stage], config.num_prefix_tokens)


def plan_resize(stages: Iterable[Stage], old: ModelConfig, new: ModelConfig) -> list[Change]:
    """The changes that `stages` need for the image size of `new`.

    Raises:
        VitnasError: a mixer does not say how it is resized.
    """
    changes: list[Change] = []
    for index, stage in enumerate(stages):
        before, after = layout_of(old, index), layout_of(new, index)
        changes.append(Change(stage, "grid", after.grid))
        for module in stage.modules():
            if isinstance(module, (TokenMixer, TokenShuffle)):
                changes += module.resized(before, after)
    return changes


def apply_changes(changes: Iterable[Change]) -> None:
    """Make the changes. Parameters that keep their shape stay the same objects."""
    for owner, name, value in changes:
        before = getattr(owner, name)
        if not isinstance(before, nn.Parameter):
            setattr(owner, name, value)
        elif before.shape == value.shape:
            with torch.no_grad():
                before.copy_(value)
        else:
            setattr(owner, name, nn.Parameter(value, requires_grad=before.requires_grad))
