"""SReT's own code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
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
)

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = re.compile(r"stages\.(\d+)\.blocks\.(\d+)\.(block|nlls\.(\d+))\.(.*)")
_STEM = re.compile(r"stem\.conv\.(\d)\.(.*)")
_INSIDE = (
    ("mixer.", "attn."),
    ("residual1.identity", "coefficient1.bias"),
    ("residual1.branch", "coefficient2.bias"),
    ("residual2.identity", "coefficient3.bias"),
    ("residual2.branch", "coefficient4.bias"),
    ("residual.identity", "coefficient1.bias"),
    ("residual.branch", "coefficient2.bias"),
    ("norm.", "norm1."),
)
_CALLED = {
    "sret_t": ("SReT_T", "SReT_T_distill"),
    "sret_s": ("SReT_S", "SReT_S_distill"),
    "sret_star_t": ("SReT_T_wo_slice",),
    "sret_star_tl": ("SReT_LT_wo_slice", "SReT_LT_wo_slice_distill"),
    "sret_star_s": ("SReT_S_wo_slice", "SReT_S_wo_slice_finetune_384"),
}
"""Zoo's name -> names in training arguments. SReT_LT is not here: it has several schedules."""
_AROUND = (("head.norm.", "norm."), ("head.classifier.", "head."))


class SretLayout(Layout):
    """szq0214/SReT: `SReT.py` and `SReT_wo_slice.py`.

    With blocks F1, F2 and non-linear layers NLL, a stage's list of modules is F1, NLL, F1, NLL, F2,
    NLL, F2, NLL. So each block is in it twice and is saved under both places. Both must hold the
    same values. The position table is a picture `(1, C, H, W)`. `coefficient` 1 and 3 multiply the
    identity, 2 and 4 the branch.

    The groups of the first pass are contiguous windows. Only the second pass permutes tokens. If
    it has several groups, the code draws a new permutation at every call, even in eval, so its own
    scores differ from call to call. Weights do not show the groups: SReT-T, SReT-*T and every
    schedule of Table 7 have the same shapes.
    """

    name = "sret"
    title = "SReT's code (szq0214/SReT)"
    fixed = ("permute",)

    def models(self) -> tuple[str, ...]:
        return tuple(name for name in zoo_names() if name.startswith("sret_"))

    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        passes = {stage.passes for stage in config.stages}
        if passes != {2}:
            rule = "SReT's code has two passes through every block"
            raise ConfigError(rule, address="groups", value=[list(s.groups) for s in config.stages])
        changes = known(num_classes=first_axis(shapes, "head.weight"), permute="second")
        pixels, table = shapes.get("patch_embed.conv1.weight"), shapes.get("pos_embed")
        if pixels and len(pixels) == 4:
            changes["in_chans"] = pixels[1]
        if table and len(table) == 4:
            stride = config.stem.stride
            changes |= sized(config, (table[2] * stride, table[3] * stride), img_size)
        return revised(config, changes)

    def source(self, name: str, config: ModelConfig, shapes: Shapes) -> Source:
        if found := _BLOCK.fullmatch(name):
            stage, block, part, pass_index, inside = found.groups()
            if part == "block":
                places = [4 * int(block), 4 * int(block) + 2]
            else:
                places = [4 * int(block) + 2 * int(pass_index) + 1]
            rest = renamed(inside, _INSIDE[:-1] if part == "block" else _INSIDE)
            return Source(tuple(f"transformers.{stage}.blocks.{at}.{rest}" for at in places))
        if name == "pos_embed":
            return Source((name,), order=_flattened)
        if found := _STEM.fullmatch(name):
            layer, rest = int(found[1]), found[2]
            kind = "bn" if layer % 3 else "conv"
            return Source((f"patch_embed.{kind}{layer // 3 + 1}.{rest}",))
        if found := re.fullmatch(r"stages\.(\d+)\.downsample\.(.*)", name):
            return Source((f"pools.{int(found[1]) - 1}.{found[2]}",))
        return Source((renamed(name, _AROUND),))

    def model_called(self, name: str | None) -> str | None:
        return next((ours for ours, theirs in _CALLED.items() if name in theirs), None)

    def remarks(self, config: ModelConfig, shapes: Shapes) -> list[str]:
        if all(stage.groups[-1] == 1 for stage in config.stages):
            return []
        return [
            "SReT's code draws a new permutation for the second pass at every call, even in eval; "
            "here it is fixed in eval, so the scores of one image differ a little from that code's"
        ]


def _flattened(table: Tensor) -> Tensor:
    """`(1, C, H, W)` -> `(1, H*W, C)`."""
    return table.flatten(2).transpose(1, 2)
