"""SKA's code for small images: its CvT."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError
from vitnas.nn.zoo.weights.hosts import Host, check_size, count, replaced
from vitnas.nn.zoo.weights.layout import Shapes, Source

if TYPE_CHECKING:
    from torch import Tensor

_HEAD_DIM = 64
_PIXELS = 4  # of a token of the first stage, down and across
_AROUND = (
    ("embed.", "patch_embed.proj."),
    ("norm.", "patch_embed.norm."),
    ("class_token", "cls_token"),
)
_CONVS = {"0": "q", "1": "k", "2": "v", "query": "q", "value": "v"}


class SmallCvt(Host):
    """`smallscaleexp/models/cvt.py`, `cvt_stu.py` and `cvt_cstu.py`: CvT's own code.

    The side of the images follows from the static keys, which are as many as the values. Attention
    does not show it, nor the number of heads, which then have 64 channels, as in the code.

    CSTU does not scale its logits. In the stage with a class token its convolution has one output
    channel for each value but the class token's, and PyTorch's `einsum` only takes this where there
    is one. The map of that stage has then one column of ones, and each token gets the sum of its
    values. Here the static keys of that stage are zero, so each of the two values has the weight
    1/2, and the values are doubled.
    """

    name = "ska_small_cvt"
    mark = "stage0.blocks.0.attn.conv_proj_q.conv.weight"

    def options(self, shapes: Shapes, img_size: int | None) -> dict[str, Any]:
        stages = len([name for name in shapes if name.endswith(".patch_embed.proj.weight")])
        first = [f"stage{stage}." for stage in range(stages)]
        dims = [shapes[f"{stage}patch_embed.proj.weight"][0] for stage in first]
        classes, _ = shapes["head.weight"]
        return {
            "img_size": _side(shapes, img_size),
            "in_chans": shapes["stage0.patch_embed.proj.weight"][1],
            "num_classes": classes,
            "embed_dims": dims,
            "depths": [count(shapes, f"{stage}blocks.") for stage in first],
            "num_heads": [
                _heads(shapes, f"{stage}blocks.0.attn.", dim)
                for stage, dim in zip(first, dims, strict=True)
            ],
            "class_token": f"{first[-1]}cls_token" in shapes,
        }

    def graft(self, shapes: Shapes) -> dict[str, Any]:
        attention = "stage0.blocks.0.attn."
        if f"{attention}k" in shapes:
            return {"mixer": "ska"}
        kinds = ("k.weight", "k1.weight")
        if any(f"{attention}{kind}" in shapes for kind in kinds):
            _check_columns(shapes)
            return {"mixer": "cska", "qk_scale": False}
        return {}

    def source(self, name: str, design: GraftFile, shapes: Shapes) -> Source:
        found = re.fullmatch(r"stages\.(\d+)\.(.*)", name)
        if found is None:
            return Source((name,))
        stage = f"stage{found[1]}."
        inside = re.fullmatch(r"(blocks\.\d+\.attn\.)(?:mixer\.)?(.*)", found[2])
        if inside is None:
            return Source((stage + replaced(found[2], _AROUND),))
        return _of_attention(stage + inside[1], inside[2], shapes)

    def remarks(self, design: GraftFile, shapes: Shapes) -> list[str]:
        if not any(name.endswith("attn.k2") for name in shapes):
            return []
        return [
            "CSTU's maps of the last stage have one column, so each token gets the sum of its "
            "values; here static keys are zero there, and values are doubled"
        ]


def _of_attention(prefix: str, name: str, shapes: Shapes) -> Source:
    """`prefix`: of their names; `name`: of our tensor in the attention or the graft."""
    if found := re.fullmatch(r"convs\.(\w+)\.(.*)", name):
        table = {"0.": "conv.", "1.": "bn.", "norm.norm.": "bn."}
        return Source((f"{prefix}conv_proj_{_CONVS[found[1]]}.{replaced(found[2], table)}",))
    kind, _, rest = name.partition(".")
    sums = f"{prefix}k2" in shapes
    if kind == "qkv":
        others = (f"{prefix}proj_k.{rest}", f"{prefix}proj_v.{rest}")
        return Source((f"{prefix}proj_q.{rest}",), others)
    if kind == "qv":
        order = _values_doubled if sums else None
        return Source((f"{prefix}proj_q.{rest}",), (f"{prefix}proj_v.{rest}",), order)
    if kind == "static_key":
        return Source((f"{prefix}k",))
    if kind == "class_key":
        return Source((f"{prefix}k2",), order=lambda key: 0 * key.repeat(1, 2, 1))
    if kind == "key" and sums:
        return Source((f"{prefix}k1.{rest}",), order=_no_logits)
    return Source((f"{prefix}{'k' if kind == 'key' else kind}.{rest}",))


def _values_doubled(both: Tensor) -> Tensor:
    """Rows of the query, then of the value."""
    doubled = both.clone()
    doubled[len(both) // 2 :] *= 2
    return doubled


def _no_logits(part: Tensor) -> Tensor:
    """Zeros for two columns instead of one."""
    return 0 * part.repeat(2, *[1] * (part.ndim - 1))


def _heads(shapes: Shapes, attention: str, dim: int) -> int:
    if key := shapes.get(f"{attention}k") or shapes.get(f"{attention}k2"):
        return key[0]
    if key := shapes.get(f"{attention}k.weight"):
        return dim // key[1]
    return max(1, dim // _HEAD_DIM)


def _values(shapes: Shapes) -> int | None:
    """Values of the first stage, without a class token's; None where weights do not show it."""
    attention = "stage0.blocks.0.attn."
    if key := shapes.get(f"{attention}k"):
        return key[1] - ("stage0.cls_token" in shapes)
    if key := shapes.get(f"{attention}k.weight") or shapes.get(f"{attention}k1.weight"):
        return key[0] // _heads(shapes, attention, shapes[f"{attention}proj_q.weight"][0])
    return None


def _side(shapes: Shapes, img_size: int | None) -> int:
    """Side of the images: each value of the first stage is of 2x2 tokens."""
    values = _values(shapes)
    if values is None or math.isqrt(values) ** 2 != values:
        return img_size or 32
    return check_size(2 * _PIXELS * math.isqrt(values), img_size)


def _check_columns(shapes: Shapes) -> None:
    """CSTU's maps with a class token have one column, or the code cannot run.

    Raises:
        ConfigError: they have more.
    """
    for name, shape in shapes.items():
        if name.endswith("attn.k2") and shape[1] != 1:
            rule = (
                f"{name} is for maps of {shape[1]} columns and {shape[1] + 1} values, which "
                "CSTU's code itself cannot run; only one column is possible with a class token"
            )
            raise ConfigError(rule)
