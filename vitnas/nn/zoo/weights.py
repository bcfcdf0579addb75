"""timm's weights in our networks."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from vitnas.errors import VitnasError
from vitnas.nn.model import HybridTransformer

_METAFORMER = (
    ("stem.conv", "stem.conv.0"),
    ("token_mixer", "mixer"),
    ("pwconv1", "expand"),
    ("act1", "act"),
    ("dwconv", "depthwise"),
    ("pwconv2", "reduce"),
    ("res_scale", "residual"),
    ("head.fc.fc1", "head.classifier.0"),
    ("head.fc.norm", "head.classifier.2"),
    ("head.fc.fc2", "head.classifier.3"),
)
_VISION_TRANSFORMER = (
    ("cls_token", "class_token"),
    ("patch_embed.proj", "stem.conv.0"),
    ("blocks.", "stages.0.blocks."),
    ("attn", "mixer"),
    ("head.", "head.classifier."),
)


def from_timm(state: Mapping[str, Tensor], model: HybridTransformer) -> dict[str, Tensor]:
    """The state of a timm network as a state of `model`, which then gives the same scores.

    CAFormer and ConvFormer (timm's `metaformer`) into a network with a `metaformer` stem; plain
    vision transformers, DeiT among them, into one of a single `mhsa` stage with a class token. The
    parameters are the same ones under other names, some with axes of length one more or less.

    Raises:
        VitnasError: a weight of `model` is missing in `state`, has other sizes, or is left over.
    """
    table = _METAFORMER if model.config.stem.kind == "metaformer" else _VISION_TRANSFORMER
    found = {_renamed(name, table): value for name, value in state.items()}
    wanted = model.state_dict()
    for name in sorted(set(wanted) ^ set(found)):
        where = "timm's weights lack" if name in wanted else "the network has no place for"
        raise VitnasError(f"{model.config.name}: {where} {name}")
    for name, value in wanted.items():
        if value.numel() != found[name].numel():
            sizes = f"{tuple(found[name].shape)} and not {tuple(value.shape)}"
            raise VitnasError(f"{model.config.name}: {name} is {sizes} in timm's weights")
    return {name: found[name].reshape(value.shape) for name, value in wanted.items()}


def _renamed(name: str, table: tuple[tuple[str, str], ...]) -> str:
    for theirs, ours in table:
        name = name.replace(theirs, ours)
    return name
