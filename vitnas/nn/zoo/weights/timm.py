"""timm's code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vitnas.config.design import ModelOrGraft
from vitnas.config.model import ModelConfig
from vitnas.errors import VitnasError
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
from vitnas.nn.zoo.weights.metaformer import MetaformerLayout

if TYPE_CHECKING:
    from torch import Tensor

    from vitnas.nn.model import HybridTransformer

_NAMES = (
    ("class_token", "cls_token"),
    ("distillation_token", "dist_token"),
    ("head.distillation_classifier.", "head_dist."),
    ("stem.conv.0.", "patch_embed.proj."),
    ("head.classifier.", "head."),
    ("head.norm.", "fc_norm."),
)
_PLAIN = {"bvit_5m": "deit_tiny", "bvit_22m": "deit_small"}
"""Zoo's name -> DeiT's name. timm has no broad attention, and BViT without it is DeiT."""


class _TimmMetaformer(MetaformerLayout):
    """timm's `metaformer`: each downsampling is the first part of a stage."""

    mlp_norm_eps = 1e-6
    block = "stages.{}.blocks.{}."
    classifier = "head.fc."
    _AROUND = (
        ("stem.conv.0.", "stem.conv."),
        ("head.classifier.0.", "head.fc.fc1."),
        ("head.classifier.2.", "head.fc.norm."),
        ("head.classifier.3.", "head.fc.fc2."),
        ("head.classifier.", "head.fc."),
    )

    def _around(self, name: str) -> str:
        return next(
            (name.replace(*pair, 1) for pair in self._AROUND if name.startswith(pair[0])), name
        )


class _VisionTransformer(Layout):
    """timm's `vision_transformer`: ViT, and DeiT with or without its distillation token."""

    def models(self) -> tuple[str, ...]:
        return tuple(n for n in zoo_names() if n in _PLAIN or re.fullmatch(r"vit_\d+b", n))

    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        changes = known(num_classes=first_axis(shapes, "head.weight")) | {"broad": {}}
        distilled = "dist_token" in shapes
        changes["distillation_token"] = distilled
        if config.name in _PLAIN:
            changes["name"] = _PLAIN[config.name] + "_distilled" * distilled
        changes["qkv_bias"] = "blocks.0.attn.qkv.bias" in shapes
        pixels, table = shapes.get("patch_embed.proj.weight"), shapes.get("pos_embed")
        if pixels and len(pixels) == 4:
            changes["in_chans"] = pixels[1]
        if table and len(table) == 3:
            tokens = config.class_token + distilled
            changes |= sized(config, square(table[1] - tokens, config), img_size)
        return revised(config, changes)

    def source(self, name: str, config: ModelConfig, shapes: Shapes) -> Source:
        theirs = name.removeprefix("stages.0.").replace(".mixer.", ".attn.")
        return Source((renamed(theirs, _NAMES),))


class TimmLayout(Layout):
    """huggingface/pytorch-image-models: its `metaformer` and its plain `vision_transformer`.

    It has the same parameters under other names. Linear layers of MetaFormers are 1x1 convolutions.
    """

    name = "timm"
    title = "timm (huggingface/pytorch-image-models)"
    _metaformer = _TimmMetaformer()
    _transformer = _VisionTransformer()

    def models(self) -> tuple[str, ...]:
        return self._metaformer.models() + self._transformer.models()

    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        return self._for(config).fit(config, shapes, img_size)

    def infer(self, shapes: Shapes, img_size: int | None = None) -> Sequence[ModelOrGraft]:
        found = self._metaformer.infer(shapes, img_size)
        return found or self._transformer.infer(shapes, img_size)

    def source(self, name: str, config: ModelConfig, shapes: Shapes) -> Source:
        return self._for(config).source(name, config, shapes)

    def _for(self, config: ModelConfig) -> Layout:
        return self._metaformer if config.stem.kind == "metaformer" else self._transformer


def from_timm(state: Mapping[str, Tensor], model: HybridTransformer) -> dict[str, Tensor]:
    """The state of a timm network as a state of `model`, which then gives the same scores.

    `state` may be of CAFormer or ConvFormer (timm's `metaformer`) if `model` has a `metaformer`
    stem. It may be of a plain vision transformer, such as DeiT, if `model` is one `mhsa` stage with
    a class token. Names differ, and some shapes differ in axes of length one.

    Raises:
        VitnasError: a weight of `model` is missing in `state`, has another shape, or `state` has
            further weights.
    """
    from vitnas.nn.zoo.weights.translate import compare, translate

    layout, config = TimmLayout(), model.config
    misfit = compare(layout, config, state)
    if not misfit.fits:
        raise VitnasError(f"{config.name}: the timm weights do not fit it: {misfit.text()}")
    return translate(layout, config, state).state
