"""The common parts of MetaFormer's own code, SKA's code and timm's `metaformer`."""

from __future__ import annotations

import math
import re
from typing import Any

from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn.zoo.names import zoo_config, zoo_names
from vitnas.nn.zoo.weights.layout import (
    Layout,
    Shapes,
    Source,
    first_axis,
    known,
    ratio_of,
    revised,
    sized,
)

_BLOCK = re.compile(r"stages\.(\d+)\.blocks\.(\d+)\.(.*)")
_DOWN = re.compile(r"stages\.(\d+)\.downsample\.(.*)")
_INSIDE = (
    ("mixer.", "token_mixer."),
    ("residual", "res_scale"),
    ("token_mixer.expand.", "token_mixer.pwconv1."),
    ("token_mixer.act.", "token_mixer.act1."),
    ("token_mixer.depthwise.", "token_mixer.dwconv."),
    ("token_mixer.reduce.", "token_mixer.pwconv2."),
    ("token_mixer.static_key", "token_mixer.k"),
    ("token_mixer.key.", "token_mixer.to_k."),
)
_AROUND = (
    ("stem.conv.0.", "downsample_layers.0.conv."),
    ("stem.norm.", "downsample_layers.0.post_norm."),
    ("head.classifier.0.", "head.fc1."),
    ("head.classifier.2.", "head.norm."),
    ("head.classifier.3.", "head.fc2."),
    ("head.classifier.", "head."),
    ("head.norm.", "norm."),
)
_MIXERS = {"pwconv1.weight": "dwconv", "qkv.weight": "mhsa", "to_k.weight": "cska", "k": "ska"}
"""Name of a tensor -> the only token mixer that has such a tensor."""


class MetaformerLayout(Layout):
    """Base of `sail-sg/metaformer`, SKA's code and timm. Shapes show the whole network.

    Attributes:
        mlp_norm_eps: epsilon of the norm inside the classifier.
        block: prefix of the tensors of a block.
        classifier: prefix of the tensors of the classifier.
    """

    fixed = ("head.mlp_norm_eps", "q_proj")
    mlp_norm_eps = 1e-5
    block = "stages.{}.{}."
    classifier = "head."

    def models(self) -> tuple[str, ...]:
        return tuple(name for name in metaformers() if self.has(zoo_config(name)))

    def has(self, config: ModelConfig) -> bool:
        return mixers_of(config) <= {"dwconv", "mhsa"}

    def fit(self, config: ModelConfig, shapes: Shapes, img_size: int | None = None) -> ModelConfig:
        changes = _head_changes(shapes, self.classifier, self.mlp_norm_eps, config)
        changes |= _biases(shapes)
        if pixels := shapes.get(self.source("stem.conv.0.weight", config, shapes).names[0]):
            changes["in_chans"] = pixels[1]
        side = self._side(config, shapes)
        changes |= known(img_size=img_size) if side is None else sized(config, side, img_size)
        for index, stage in enumerate(config.stages):
            if stage.token_mixer in ("ska", "cska"):
                projects = bool({"q.weight", "qv.weight"} & self._mixer_of(shapes, index))
                changes[f"stages.{index}.q_proj"] = projects
        return revised(config, changes)

    def infer(self, shapes: Shapes, img_size: int | None = None) -> list[ModelConfig]:
        """The one network of these shapes. If it is in the zoo, it has its name there."""
        stages = [self._stage(shapes, index) for index in range(self._count(shapes, "stages."))]
        if not stages or None in stages:
            return []
        tree = {**zoo_config("caformer_s18").to_tree(), "name": "metaformer", "stages": stages}
        if f"{self.classifier}weight" in shapes:
            tree["head"] = {}
        for address in ("qkv_bias", "proj_bias"):
            tree.pop(address, None)
        try:
            found = revised(zoo_config("caformer_s18"), tree)
            if img_size is None and (side := self._side(found, shapes)):
                found = revised(found, {"img_size": side[0]})
            found = self.fit(found, shapes, img_size)
        except ConfigError:
            return []
        return [revised(found, {"name": self._name(found, shapes, img_size)})]

    def source(self, name: str, config: ModelConfig, shapes: Shapes) -> Source:
        if found := _BLOCK.fullmatch(name):
            inside = found[3]
            for ours, theirs in _INSIDE:
                inside = inside.replace(ours, theirs, 1)
            return self._joined(self.block.format(found[1], found[2]) + inside, shapes)
        return Source((self._around(name),))

    def _around(self, name: str) -> str:
        """The name, in this code, of a tensor outside the blocks."""
        if found := _DOWN.fullmatch(name):
            rest = found[2].replace("norm.", "pre_norm.", 1)
            return f"downsample_layers.{found[1]}.{rest}"
        for ours, theirs in _AROUND:
            if name.startswith(ours):
                return name.replace(ours, theirs, 1)
        return name

    def _joined(self, name: str, shapes: Shapes) -> Source:
        """Query and value of a static-key mixer: one tensor, two of them, or the value alone."""
        if ".qv." not in name or name in shapes:
            return Source((name,))
        query, value = name.replace(".qv.", ".q."), name.replace(".qv.", ".v.")
        return Source((query,), behind=(value,)) if query in shapes else Source((value,))

    def _count(self, shapes: Shapes, prefix: str) -> int:
        """How many of the numbers 0, 1, 2, ... follow `prefix` in the names, without a gap."""
        numbers = {name[len(prefix) :].split(".")[0] for name in shapes if name.startswith(prefix)}
        return next(count for count in range(len(numbers) + 1) if str(count) not in numbers)

    def _mixer_of(self, shapes: Shapes, stage: int) -> set[str]:
        """Names of the tensors in the token mixer of the first block of a stage."""
        prefix = self.block.format(stage, 0) + "token_mixer."
        return {name[len(prefix) :] for name in shapes if name.startswith(prefix)}

    def _stage(self, shapes: Shapes, index: int) -> dict[str, Any] | None:
        """A stage as in a model file, or None if the shapes do not show it."""
        first = self.block.format(index, 0)
        inside = self._mixer_of(shapes, index)
        mixer = next((mixer for name, mixer in _MIXERS.items() if name in inside), None)
        width, hidden = (
            first_axis(shapes, first + name) for name in ("norm1.weight", "mlp.fc1.weight")
        )
        if mixer is None or not width or not hidden:
            return None
        depth = self._count(shapes, self.block.format(index, "").removesuffix("."))
        stage: dict[str, Any] = {"token_mixer": mixer, "depth": depth, "embed_dim": width}
        stage |= {
            "mlp_ratio": hidden / width,
            **_sizes(shapes, first + "token_mixer.", mixer, width),
        }
        if f"{first}res_scale1.scale" in shapes:
            stage["residual"] = "scale"
        return stage

    def _side(self, config: ModelConfig, shapes: Shapes) -> tuple[int, int] | None:
        """Height and width of the images if a static key shows them, else None."""
        for index, stage in enumerate(config.stages):
            name = self.block.format(index, 0) + "token_mixer."
            tokens = None
            if stage.token_mixer == "ska" and len(shapes.get(name + "k", ())) == 3:
                tokens = shapes[name + "k"][1]
            elif stage.token_mixer == "cska":
                tokens = (first_axis(shapes, name + "to_k.weight") or 0) // stage.heads
            if tokens and tokens != math.prod(config.grids[index]):
                side = math.isqrt(tokens) * (config.stem.stride << index)
                return side, side
            if tokens:
                return config.image_hw
        return None

    def _name(self, config: ModelConfig, shapes: Shapes, img_size: int | None) -> str:
        """The zoo's name of this code's network `config`, or its own name."""
        for name in metaformers():
            try:
                if self.fit(self.zoo(name), shapes, img_size).key == config.key:
                    return name
            except ConfigError:
                continue
        return config.name


def metaformers() -> tuple[str, ...]:
    """The zoo's MetaFormers."""
    return tuple(name for name in zoo_names() if zoo_config(name).stem.kind == "metaformer")


def mixers_of(config: ModelConfig) -> set[str]:
    """The token mixers of a network."""
    return {mixer for stage in config.stages for mixer in stage.kinds}


def _sizes(shapes: Shapes, prefix: str, mixer: str, width: int) -> dict[str, Any]:
    """Fields of a stage that the shapes of its token mixer show, besides the width."""
    if mixer == "dwconv":
        middle, kernel = (
            shapes.get(prefix + name, (0, 0, 7)) for name in ("pwconv1.weight", "dwconv.weight")
        )
        return {"expansion": ratio_of(middle[0], width), "kernel_size": kernel[2]}
    if mixer == "cska":
        key = shapes[prefix + "to_k.weight"]
        return {"head_dim": key[1], "key_kernel": key[2]}
    return {"head_dim": shapes[prefix + "k"][2]} if mixer == "ska" else {}


def _biases(shapes: Shapes) -> dict[str, Any]:
    """Whether queries, keys and values, and the projections, have a bias."""
    linear = [name.split("token_mixer.")[1] for name in shapes if "token_mixer." in name]
    changes = {}
    for address, names in (("qkv_bias", ("qkv", "qv", "v")), ("proj_bias", ("proj",))):
        if any(f"{name}.weight" in linear for name in names):
            changes[address] = any(f"{name}.bias" in linear for name in names)
    return changes


def _head_changes(
    shapes: Shapes, classifier: str, eps: float, config: ModelConfig
) -> dict[str, Any]:
    mlp = config.head.kind == "mlp"
    classes = first_axis(shapes, f"{classifier}fc2.weight" if mlp else f"{classifier}weight")
    return known(num_classes=classes) | ({"head.mlp_norm_eps": eps} if mlp else {})
