"""SKA's code for small images: its ViT as a model file, its other networks as grafts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vitnas.config.design import ModelOrGraft
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn.zoo.names import zoo_config
from vitnas.nn.zoo.weights.hosts import Host
from vitnas.nn.zoo.weights.layout import (
    Layout,
    Shapes,
    Source,
    first_axis,
    known,
    ratio_of,
    renamed,
    revised,
    sized,
    square,
)
from vitnas.nn.zoo.weights.small_cait import SmallCait
from vitnas.nn.zoo.weights.small_cvt import SmallCvt
from vitnas.nn.zoo.weights.small_swin import SmallSwin
from vitnas.nn.zoo.weights.small_vit import SmallCstuVit, patch_of, pixels_last

if TYPE_CHECKING:
    from torch import Tensor

_HOSTS: tuple[Host, ...] = (SmallCstuVit(), SmallCait(), SmallSwin(), SmallCvt())
"""The networks of this code that become networks with grafts."""
_HEAD_DIM = 64
_BLOCKS = "transformer.layers."
_NAMES = (
    ("class_token", "cls_token"),
    ("pos_embed", "pos_embedding"),
    ("stem.norm.", "to_patch_embedding.to_patch_tokens.1."),
    ("stem.proj.", "to_patch_embedding.to_patch_tokens.2."),
    ("head.classifier.", "mlp_head.1."),
    ("norm.", "mlp_head.0."),
)
_INSIDE = (
    ("norm1.", "0.norm."),
    ("mixer.tau", "0.fn.temperature"),
    ("mixer.static_key", "0.fn.k"),
    ("mixer.proj.", "0.fn.to_out.0."),
    ("mixer.", "0.fn.to_"),
    ("norm2.", "1.norm."),
    ("mlp.fc1.", "1.fn.net.0."),
    ("mlp.fc2.", "1.fn.net.3."),
)


class SmallLayout(Layout):
    """zizhao-hu/SKA: `smallscaleexp/models`, the ViT with attention or with STU.

    It is vit-pytorch's `vit_for_small_dataset`, so such a network of vit-pytorch is read, too. Its
    patches are shifted, no token attends to itself, and each block learns what its logits are
    multiplied by: exp(t), where ours is 1 / (tau sqrt(d)). STU is `ska` with a projected query.
    Heads have 64 channels, the code's default, unless a static key or a model file says otherwise.

    No model file describes its other networks. They become networks with grafts; see `_HOSTS`.
    """

    name = "ska_small"
    title = "SKA's code for small images (zizhao-hu/SKA, smallscaleexp)"
    fixed = (
        *("stem.kind", "temperature.kind", "mask_diagonal", "norm_eps", "head.norm_eps"),
        *("qk_scale", "class_row"),  # of grafts
    )
    constants = r"\.(upper_lower|left_right)_mask$"  # of Swin's windows: -inf where hidden

    def models(self) -> tuple[str, ...]:
        return ("vit_small_32", "ska_vit_small_32")

    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        changes = known(num_classes=first_axis(shapes, "mlp_head.1.weight"))
        changes |= {"stem.kind": "shifted", "temperature.kind": "learnable"}
        changes |= {"norm_eps": 1e-5, "head.norm_eps": 1e-5, "stages.0.mask_diagonal": True}
        if found := patch_of(shapes):
            changes["in_chans"], changes["stem.stride"] = found
        config = revised(config, changes)
        table = shapes.get("pos_embedding")
        sides = square(table[1] - 1, config) if table and len(table) == 3 else config.image_hw
        return revised(config, sized(config, sides, img_size))

    def infer(self, shapes: Shapes, img_size: int | None = None) -> Sequence[ModelOrGraft]:
        """The one network of these shapes.

        Raises:
            ConfigError: it is one of `_HOSTS` that the code itself cannot run.
        """
        for host in _HOSTS:
            if host.has(shapes):
                return host.infer(shapes, img_size)
        return self._vits(shapes, img_size)

    def _vits(self, shapes: Shapes, img_size: int | None) -> list[ModelConfig]:
        first = f"{_BLOCKS}0.0.fn."
        width, hidden = (
            first_axis(shapes, name)
            for name in ("mlp_head.0.weight", f"{_BLOCKS}0.1.fn.net.0.weight")
        )
        if not width or not hidden or patch_of(shapes) is None:
            return []
        stage = _attention(shapes, first) | {
            "embed_dim": width,
            "mlp_ratio": ratio_of(hidden, width),
        }
        stage["depth"] = len({name.split(".")[2] for name in shapes if name.startswith(_BLOCKS)})
        name = "ska_vit_small" if stage["token_mixer"] == "ska" else "vit_small"
        tree = {**zoo_config("vit_small_32").to_tree(), "name": name, "stages": [stage]}
        try:
            return [self.fit(revised(zoo_config("vit_small_32"), tree), shapes, img_size)]
        except ConfigError:
            return []

    def source(self, name: str, config: ModelOrGraft, shapes: Shapes) -> Source:
        if isinstance(config, GraftFile):
            return _host_of(config).source(name, config, shapes)
        if found := re.fullmatch(r"stages\.0\.blocks\.(\d+)\.(.*)", name):
            theirs = f"{_BLOCKS}{found[1]}.{renamed(found[2], _INSIDE)}"
            stage = config.stages[0]
            scale = (stage.attn_width / stage.heads) ** -0.5 if stage.qk_scale else 1.0
            order = _temperature(scale) if found[2] == "mixer.tau" else None
            return Source((theirs,), order=order)
        inside = name in ("stem.norm.weight", "stem.norm.bias", "stem.proj.weight")
        order = pixels_last(config.stem.stride) if inside else None
        return Source((renamed(name, _NAMES),), order=order)

    def remarks(self, config: ModelOrGraft, shapes: Shapes) -> list[str]:
        if isinstance(config, GraftFile):
            return _host_of(config).remarks(config, shapes)
        return []


def _host_of(design: GraftFile) -> Host:
    return next(host for host in _HOSTS if host.name == design.model)


def _attention(shapes: Shapes, prefix: str) -> dict[str, Any]:
    """The mixer of the first block, its heads and its width, as fields of a stage."""
    if key := shapes.get(f"{prefix}k"):
        return {"token_mixer": "ska", "attn_dim": key[0] * key[2], "head_dim": key[2]}
    total = first_axis(shapes, f"{prefix}to_qkv.weight") or 0
    return {"token_mixer": "mhsa", "attn_dim": max(1, total // 3), "head_dim": _HEAD_DIM}


def _temperature(scale: float) -> Callable[[Tensor], Tensor]:
    """tau of `scale` / tau = exp(t)."""

    def order(theirs: Tensor) -> Tensor:
        return scale * (-theirs).exp().reshape(1)

    return order
