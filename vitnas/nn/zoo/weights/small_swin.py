"""SKA's code for small images: its Swin."""

from __future__ import annotations

import math
import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vitnas.config.graft_file import GraftFile
from vitnas.nn.zoo.weights.hosts import Host, check_size, count, linear, patch_side, replaced
from vitnas.nn.zoo.weights.layout import Shapes, Source

if TYPE_CHECKING:
    from torch import Tensor

_HEAD_DIM = 32
_FIRST, _ATTENTION = "stage1.layers.0.0.", "attention_block.fn.fn."
_INSIDE = (
    ("norm1.", "attention_block.fn.norm."),
    ("norm2.", "mlp_block.fn.norm."),
    ("mlp.fc1.", "mlp_block.fn.fn.net.0."),
    ("mlp.fc2.", "mlp_block.fn.fn.net.2."),
    ("attn.places.table", f"{_ATTENTION}pos_embedding"),
    ("attn.qkv.", f"{_ATTENTION}to_qkv."),
    ("attn.proj.", f"{_ATTENTION}to_out."),
    ("attn.mixer.qv.", f"{_ATTENTION}to_qv."),
    ("attn.mixer.proj.", f"{_ATTENTION}to_out."),
    ("attn.mixer.static_key", f"{_ATTENTION}k"),
    ("attn.mixer.key.", f"{_ATTENTION}to_k."),
)


class SmallSwin(Host):
    """`smallscaleexp/models/swin_stu.py` and `swin_cstu.py`, and the Swin before them.

    The side of the images follows from the number of windows in the first stage, each of which has
    a key. Attention does not show it, nor the number of heads, which then have 32 channels, as in
    the code. The masks of shifted windows are constants.
    """

    name = "ska_small_swin"
    mark = f"{_FIRST}{_ATTENTION}pos_embedding"

    def options(self, shapes: Shapes, img_size: int | None) -> dict[str, Any]:
        stages = [f"stage{number}." for number in range(1, count(shapes, "stage") + 1)]
        classes, _ = linear(shapes, "mlp_head.1.weight")
        sizes = [linear(shapes, f"{stage}patch_partition.linear.weight") for stage in stages]
        channels, pixels = patch_side(sizes[0][1])
        factors = [pixels] + [
            math.isqrt(inside // before) for (before, _), (_, inside) in pairwise(sizes)
        ]
        table, _ = shapes[self.mark]
        head_dim = _head_dim(shapes, f"{_FIRST}{_ATTENTION}")
        return {
            "img_size": _side(shapes, (table + 1) // 2 * pixels, img_size),
            "in_chans": channels,
            "num_classes": classes,
            "embed_dim": sizes[0][0],
            "depths": [2 * count(shapes, f"{stage}layers.") for stage in stages],
            "num_heads": [
                linear(shapes, f"{stage}layers.0.0.{_ATTENTION}to_out.weight")[1] // head_dim
                for stage in stages
            ],
            "head_dim": head_dim,
            "window_size": (table + 1) // 2,
            "downscaling_factors": factors,
        }

    def graft(self, shapes: Shapes) -> dict[str, Any]:
        first = f"{_FIRST}{_ATTENTION}"
        if f"{first}k" in shapes:
            return {"mixer": "ska"}
        return {"mixer": "cska"} if f"{first}to_k.weight" in shapes else {}

    def source(self, name: str, design: GraftFile, shapes: Shapes) -> Source:
        found = re.fullmatch(r"stages\.(\d+)\.(?:blocks\.(\d+)\.)?(.*)", name)
        if found is None:
            return Source((replaced(name, {"norm.": "mlp_head.0.", "head.": "mlp_head.1."}),))
        stage, inside = int(found[1]), found[3]
        if found[2] is None:
            theirs = inside.replace("merge.", "patch_partition.linear.")
            side = design.options.downscaling_factors[stage]
            order = partial(_as_convolution, side) if inside == "merge.weight" else None
            return Source((f"stage{stage + 1}.{theirs}",), order=order)
        pair, second = divmod(int(found[2]), 2)
        theirs = f"stage{stage + 1}.layers.{pair}.{second}.{replaced(inside, _INSIDE)}"
        heads = design.options.given()["num_heads"][stage]
        options = design.options
        if inside == "attn.mixer.static_key":
            return Source((theirs,), order=_joined)
        if inside.startswith("attn.mixer.key."):
            return Source((theirs,), order=partial(_windows_first, heads, options.head_dim or 1))
        return Source((theirs,))


def _joined(key: Tensor) -> Tensor:
    """`(h, W, n, d)` -> `(h, W n, d)`."""
    return key.flatten(1, 2)


def _windows_first(heads: int, head_dim: int, part: Tensor) -> Tensor:
    """Output channels in the order (head, window, d) -> (window, head, d)."""
    turned: Tensor = part.unflatten(0, (heads, -1, head_dim)).transpose(0, 1)
    return turned.flatten(0, 2)


def _as_convolution(side: int, weight: Tensor) -> Tensor:
    """`(D, C p p)` -> `(D, C, p, p)`."""
    pixels: Tensor = weight.unflatten(1, (-1, side, side))
    return pixels


def _head_dim(shapes: Shapes, attention: str) -> int:
    if key := shapes.get(f"{attention}k"):
        return key[3]
    if key := shapes.get(f"{attention}to_k.weight"):
        return key[1]
    return _HEAD_DIM


def _side(shapes: Shapes, window: int, img_size: int | None) -> int:
    """Side of the images, of whose windows each has `window` pixels a side."""
    attention = f"{_FIRST}{_ATTENTION}"
    if key := shapes.get(f"{attention}k"):
        windows = key[1]
    elif key := shapes.get(f"{attention}to_k.weight"):
        windows = key[0] // linear(shapes, f"{attention}to_out.weight")[1]
    else:
        return img_size or 32
    return check_size(window * math.isqrt(windows), img_size)
