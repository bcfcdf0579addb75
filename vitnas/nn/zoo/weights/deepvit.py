"""DeepViT's own code."""

from __future__ import annotations

import re
from typing import Any

from vitnas.config.model import ModelConfig
from vitnas.nn.zoo.names import zoo_names
from vitnas.nn.zoo.weights.layout import (
    Layout,
    Shapes,
    Source,
    first_axis,
    known,
    renamed,
    revised,
    sized,
    square,
)

_HEADS = 12
_NAMES = (
    ("reattention.theta.", "reatten_matrix."),
    ("reattention.norm.", "var_norm."),
    ("class_token", "cls_token"),
    ("head.classifier.", "head."),
)
_CNN = {"0": "conv1", "1": "bn1", "3": "conv2", "4": "bn2", "6": "proj"}
_DOUBLED = ("deepvit_s", "deepvit_l", "deepvit_l_420", "deepvit_l_384")


class DeepvitLayout(Layout):
    """zhoudaquan/dvit_repo: `models/deep_vision_transformer.py`.

    Theta, the matrix of re-attention, is a 1x1 convolution with a bias. Its norm is a BatchNorm
    over the heads. The first row of the position table is the class token's.

    `deepvit_S` and `deepvit_L` are built with `scale_adjustment=0.5`: x + f(norm(x / 2)) * 2. So
    every branch is doubled (`branch_scale`), and a norm of x / 2 with epsilon 1e-6 equals a norm of
    x with 4e-6 (`norm_eps`). Only `deepvit_S` has `transform_scale=True`: the mixed map is
    multiplied by head_dim^-0.5 (`reattention.scale`). Shapes do not show these arguments. For a
    model file of your own, `branch_scale` and `reattention.scale` are read from that file.
    """

    name = "deepvit"
    title = "DeepViT's code (zhoudaquan/dvit_repo)"
    fixed = ("branch_scale", "norm_eps", "reattention.scale")

    def models(self) -> tuple[str, ...]:
        families = ("deepvit_", "vit_")
        return tuple(name for name in zoo_names() if name.startswith(families))

    def options(self, model: str) -> dict[str, Any]:
        changes: dict[str, Any] = {"branch_scale": 2.0} if model in _DOUBLED else {}
        if model == "deepvit_s":
            changes["reattention.scale"] = (396 / _HEADS) ** -0.5
        return changes

    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        changes = known(num_classes=first_axis(shapes, "head.weight"))
        changes["norm_eps"] = 1e-6 * config.branch_scale**2
        first = "patch_embed." + ("conv1" if config.stem.kind == "deepvit" else "proj") + ".weight"
        pixels, table = shapes.get(first), shapes.get("pos_embed")
        if pixels and len(pixels) == 4:
            changes["in_chans"] = pixels[1]
        if table and len(table) == 3:
            changes |= sized(config, square(table[1] - 1, config), img_size)
        return revised(config, changes)

    def source(self, name: str, config: ModelConfig, shapes: Shapes) -> Source:
        if found := re.fullmatch(r"stem\.conv\.(\d)\.(.*)", name):
            part = _CNN[found[1]] if config.stem.kind == "deepvit" else "proj"
            return Source((f"patch_embed.{part}.{found[2]}",))
        theirs = name.removeprefix("stages.0.").replace(".mixer.", ".attn.")
        return Source((renamed(theirs, _NAMES),))
