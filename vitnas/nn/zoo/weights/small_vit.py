"""SKA's code for small images: its ViT with CSTU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vitnas.config.graft_file import GraftFile
from vitnas.nn.zoo.weights.hosts import Host, check_size, count, linear, patch_side, replaced
from vitnas.nn.zoo.weights.layout import Shapes, Source, ratio_of

if TYPE_CHECKING:
    from torch import Tensor

_PIXELS = "to_patch_embedding.to_patch_tokens.2.weight"
_AROUND = (
    ("cls_token", "cls_token"),
    ("pos_embed", "pos_embedding"),
    ("patch_embed.norm.", "to_patch_embedding.to_patch_tokens.1."),
    ("patch_embed.proj.", "to_patch_embedding.to_patch_tokens.2."),
    ("norm.", "mlp_head.0."),
    ("head.", "mlp_head.1."),
)
_INSIDE = (
    ("norm1.", "0.norm."),
    ("attn.mixer.qv.", "0.fn.to_qv."),
    ("attn.mixer.proj.", "0.fn.to_out.0."),
    ("attn.mixer.key.", "0.fn.to_k."),
    ("norm2.", "1.norm."),
    ("mlp.fc1.", "1.fn.net.0."),
    ("mlp.fc2.", "1.fn.net.3."),
)


class SmallCstuVit(Host):
    """`smallscaleexp/models/vit_small_cstu.py`: shifted patches, `cska`, a masked diagonal.

    The map has the class token's row last, and the values have the class token first. The code
    learns t in each block and multiplies that row alone by exp(t); here it is in the row's key.
    """

    name = "ska_small_vit"
    mark = "transformer.layers.0.0.fn.k2"

    def options(self, shapes: Shapes, img_size: int | None) -> dict[str, Any]:
        classes, width = linear(shapes, "mlp_head.1.weight")
        hidden, _ = linear(shapes, "transformer.layers.0.1.fn.net.0.weight")
        found = patch_of(shapes)
        if found is None:
            raise ValueError
        channels, patch = found
        _, tokens, _ = shapes["pos_embedding"]
        return {
            "img_size": check_size(patch * math.isqrt(tokens - 1), img_size),
            "patch_size": patch,
            "in_chans": channels,
            "num_classes": classes,
            "embed_dim": width,
            "depth": count(shapes, "transformer.layers."),
            "num_heads": shapes[self.mark][0],
            "mlp_ratio": ratio_of(hidden, width),
        }

    def graft(self, shapes: Shapes) -> dict[str, Any]:
        order = {"class_row": "last", "mask_diagonal": True}
        return {"mixer": "cska", "qk_scale": False, **order}

    def source(self, name: str, design: GraftFile, shapes: Shapes) -> Source:
        if found := re.fullmatch(r"blocks\.(\d+)\.(.*)", name):
            block = f"transformer.layers.{found[1]}."
            if found[2] == "attn.mixer.class_key":
                inside = f"{block}0.fn."
                return Source((f"{inside}k2",), order=_scaled, beside=(f"{inside}temperature",))
            return Source((block + replaced(found[2], _INSIDE),))
        _, side = patch_of(shapes) or (0, 1)
        pixels = ("patch_embed.norm.weight", "patch_embed.norm.bias", "patch_embed.proj.weight")
        order = pixels_last(side) if name in pixels else None
        return Source((replaced(name, _AROUND),), order=order)


def _scaled(key: Tensor, logarithm: Tensor) -> Tensor:
    return key * logarithm.exp()


def patch_of(shapes: Shapes) -> tuple[int, int] | None:
    """Channels of an image and side of a patch of five images; None if there is no such patch."""
    try:
        return patch_side(shapes[_PIXELS][-1], images=5)
    except (KeyError, ValueError):
        return None


def pixels_last(side: int) -> Callable[[Tensor], Tensor]:
    """Their patch has (row, column, channel) on the last axis; ours has the channel first."""

    def order(patch: Tensor) -> Tensor:
        first: Tensor = patch.unflatten(-1, (side, side, -1)).movedim(-1, -3).flatten(-3)
        return first

    return order
