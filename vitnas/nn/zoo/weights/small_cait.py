"""SKA's code for small images: its CaiT."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from vitnas.config.graft_file import GraftFile
from vitnas.nn.zoo.weights.hosts import Host, check_size, count, linear, patch_side, replaced
from vitnas.nn.zoo.weights.layout import Shapes, Source, ratio_of

if TYPE_CHECKING:
    from torch import Tensor

_PATCHES, _CLASS = "patch_transformer.layers.", "cls_transformer.layers."
_ATTENTION = "0.fn.fn."
_AROUND = (
    ("cls_token", "cls_token"),
    ("pos_embed", "pos_embedding"),
    ("patch_embed.proj.", "to_patch_embedding.1."),
    ("norm.", "mlp_head.0."),
    ("head.", "mlp_head.1."),
)
_INSIDE = (
    ("gamma_1", "0.scale"),
    ("gamma_2", "1.scale"),
    ("norm1.", "0.fn.norm."),
    ("norm2.", "1.fn.norm."),
    ("mlp.fc1.", "1.fn.fn.net.0."),
    ("mlp.fc2.", "1.fn.fn.net.3."),
    ("attn.mixer.", f"attn.{_ATTENTION}"),
    ("attn.", f"attn.{_ATTENTION}"),
)
_IN_ATTENTION = (
    ("proj_l.weight", "mix_heads_pre_attn"),
    ("proj_w.weight", "mix_heads_post_attn"),
    ("proj.", "to_out.0."),
    ("static_key", "k"),
    ("key.", "to_k."),
)


class SmallCait(Host):
    """`smallscaleexp/models/cait_stu.py` and `cait_cstu.py`, and vit-pytorch's CaiT before them.

    CSTU does not scale its logits. STU has a key for 256 tokens, whatever the image's size is, so
    the code runs where the image has so many, as at 32 px with patches of 2 px. Its `layer_dropout`
    leaves out blocks at random, also in eval; here every block is computed.
    """

    name = "ska_small_cait"
    mark = f"{_PATCHES}0.{_ATTENTION}mix_heads_pre_attn"

    def options(self, shapes: Shapes, img_size: int | None) -> dict[str, Any]:
        classes, width = linear(shapes, "mlp_head.1.weight")
        _, numbers = linear(shapes, "to_patch_embedding.1.weight")
        channels, patch = patch_side(numbers)
        hidden, for_class = (
            linear(shapes, f"{blocks}0.1.fn.fn.net.0.weight")[0] for blocks in (_PATCHES, _CLASS)
        )
        heads, inner = shapes[self.mark][0], linear(shapes, f"{_PATCHES}0.{_ATTENTION}to_q.weight")
        _, tokens, _ = shapes["pos_embedding"]
        return {
            "img_size": check_size(patch * math.isqrt(tokens), img_size),
            "patch_size": patch,
            "in_chans": channels,
            "num_classes": classes,
            "embed_dim": width,
            "depth": count(shapes, _PATCHES),
            "num_heads": heads,
            "head_dim": inner[0] // heads,
            "mlp_ratio": ratio_of(hidden, width),
            "depth_token_only": count(shapes, _CLASS),
            "mlp_ratio_token_only": ratio_of(for_class, width),
        }

    def graft(self, shapes: Shapes) -> dict[str, Any]:
        first = f"{_PATCHES}0.{_ATTENTION}"
        if f"{first}k" in shapes:
            return {"mixer": "ska"}
        if f"{first}to_k.bias" in shapes:
            return {"mixer": "cska", "qk_scale": False}
        return {}

    def source(self, name: str, design: GraftFile, shapes: Shapes) -> Source:
        found = re.fullmatch(r"(blocks|blocks_token_only)\.(\d+)\.(.*)", name)
        if found is None:
            side = patch_side(shapes["to_patch_embedding.1.weight"][1])[1] if shapes else 1
            is_pixels = name == "patch_embed.proj.weight"
            order = partial(_as_convolution, side) if is_pixels else None
            return Source((replaced(name, _AROUND),), order=order)
        block = f"{_PATCHES if found[1] == 'blocks' else _CLASS}{found[2]}."
        inside = replaced(found[3], _INSIDE)
        if inside.startswith("attn."):
            prefix = f"{block}{_ATTENTION}"
            return _of_attention(prefix, inside.removeprefix(f"attn.{_ATTENTION}"), shapes)
        is_scale = inside.endswith(".scale")
        return Source((block + inside,), order=_flat if is_scale else None)


def _of_attention(prefix: str, name: str, shapes: Shapes) -> Source:
    """`prefix`: of their names; `name`: of our tensor in the attention or the graft."""
    kind, _, rest = name.partition(".")
    if kind == "qkv":
        both = f"{prefix}to_kv.{rest}"
        others = (both,) if both in shapes else (f"{prefix}to_k.{rest}", f"{prefix}to_v.{rest}")
        return Source((f"{prefix}to_q.{rest}",), others)
    if kind == "qv":
        return Source((f"{prefix}to_q.{rest}",), (f"{prefix}to_v.{rest}",))
    mixes = kind in ("proj_l", "proj_w")  # theirs is multiplied from the other side
    return Source((prefix + replaced(name, _IN_ATTENTION),), order=_turned if mixes else None)


def _turned(matrix: Tensor) -> Tensor:
    return matrix.mT


def _flat(scale: Tensor) -> Tensor:
    return scale.flatten()


def _as_convolution(side: int, weight: Tensor) -> Tensor:
    """`(D, p * p * C)`, channels innermost -> `(D, C, p, p)`."""
    pixels: Tensor = weight.unflatten(1, (side, side, -1)).movedim(3, 1)
    return pixels
