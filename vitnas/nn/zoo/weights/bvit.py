"""BViT's own code."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = re.compile(r"stages\.0\.blocks\.(\d+)\.(.*)")
_INSIDE = (
    ("norm1.", "0.norm."),
    ("mixer.qkv.", "0.fn.to_qkv."),
    ("mixer.proj.", "0.fn.to_out.0."),
    ("norm2.", "1.norm."),
    ("mlp.fc1.", "1.fn.net.0."),
    ("mlp.fc2.", "1.fn.net.3."),
)
_AROUND = (
    ("class_token", "cls_token"),
    ("head.classifier.", "mlp_head.1."),
    ("norm.", "mlp_head.0."),
)
_CODE = {
    "qkv_bias": False,
    "norm_eps": 1e-5,
    "head.norm_eps": 1e-5,
    "broad": {"gamma": 0.4, "pool": "official", "scale": "head_dim"},
}
"""Constants of the code: layer norms have PyTorch's epsilon 1e-5, and gamma is 0.4."""


class BvitLayout(Layout):
    """koala719/BViT: `model/layer/bvit.py`, with vit-pytorch's names.

    The code differs from the paper. Queries, keys and values have no bias, and gamma is 0.4. A 7x7
    convolution of stride 2 halves the picture before the patches (`stem.kind: bvit`). So 224 px
    give 49 patches instead of 196. The position table has 197 rows, for 196 patches and the class
    token; the code uses the first rows, one for each token. A checkpoint without this convolution
    is read as the paper's network.

    The patch projection is a linear layer over (row, column, channel). The code pools broad
    attention to 192 channels for every width, so its 384-channel network cannot run. Here it pools
    to the width.
    """

    name = "bvit"
    title = "BViT's code (koala719/BViT)"
    fixed = ("stem.kind", *_CODE, "broad.gamma")

    def models(self) -> tuple[str, ...]:
        return tuple(name for name in zoo_names() if name in ("bvit_5m", "bvit_22m"))

    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        changes = known(num_classes=first_axis(shapes, "mlp_head.1.weight")) | _CODE
        rows = first_axis(shapes, "pos_embedding") and shapes["pos_embedding"][1]
        halved, patches = shapes.get("conv.weight"), shapes.get("to_patch_embedding.1.weight")
        if halved:
            changes |= {"stem.kind": "bvit", "in_chans": halved[0]}
            if config.stem.kind != "bvit":
                changes["stem.stride"] = 2 * config.stem.stride
            changes |= known(img_size=img_size)
        else:
            if patches and len(patches) == 2:
                changes["in_chans"] = max(1, patches[1] // config.stem.stride**2)
            if rows:
                changes |= sized(config, square(rows - 1, config), img_size)
        return revised(config, changes)

    def source(self, name: str, config: ModelConfig, shapes: Shapes) -> Source:
        if found := _BLOCK.fullmatch(name):
            return Source((f"transformer.layers.{found[1]}.{renamed(found[2], _INSIDE)}",))
        if name == "pos_embed":
            return Source(("pos_embedding",), order=partial(_first_rows, config.num_tokens(0)))
        if name.startswith("stem.conv.0.") and config.stem.kind == "bvit":
            return Source((name.replace("stem.conv.0", "conv"),))
        if found := re.fullmatch(r"stem\.conv\.\d\.(.*)", name):
            patch = config.stem.stride // (2 if config.stem.kind == "bvit" else 1)
            order = partial(_as_convolution, patch) if found[1] == "weight" else None
            return Source((f"to_patch_embedding.1.{found[1]}",), order=order)
        return Source((renamed(name, _AROUND),))

    def remarks(self, config: ModelConfig, shapes: Shapes) -> list[str]:
        used, rows = config.num_tokens(0), shapes.get("pos_embedding", (1, 0))[1]
        remarks = []
        if used < rows:
            remarks.append(
                f"rows {used} to {rows - 1} of pos_embedding are left out: at "
                f"{config.image_hw[0]} px BViT's code uses only the first {used}"
            )
        if config.stages[0].embed_dim != 192:
            remarks.append(
                "BViT's code pools broad attention to 192 channels and cannot run this width; here "
                f"it is pooled to {config.stages[0].embed_dim}"
            )
        return remarks


def _first_rows(count: int, table: Tensor) -> Tensor:
    """`(1, R, C)` -> `(1, count, C)`."""
    return table[:, :count]


def _as_convolution(patch: int, weight: Tensor) -> Tensor:
    """`(D, p * p * C)`, channels innermost -> `(D, C, p, p)`."""
    return weight.reshape(weight.shape[0], patch, patch, -1).permute(0, 3, 1, 2)
