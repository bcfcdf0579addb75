"""graft.yaml: a network of timm, how it is built, and its grafts, if any. No torch."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from vitnas.config.files import validate
from vitnas.config.graft import GraftConfig
from vitnas.config.parts import Frozen, as_tuple

_Pixels = Annotated[int, Field(ge=1, le=16_384)]
_Layers = Annotated[int, Field(ge=1, le=1_000)]
_Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
_Ratio = Annotated[float, Field(gt=0.0, le=64.0)]
_LayerName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
_Sides = _Pixels | Annotated[tuple[_Pixels, _Pixels], BeforeValidator(as_tuple)]
_Stages = Annotated[tuple[_Layers, ...], Field(max_length=8), BeforeValidator(as_tuple)]
_EachStage = _Layers | _Stages
_Widths = Annotated[
    tuple[Annotated[int, Field(ge=1, le=16_384)], ...],
    Field(max_length=8),
    BeforeValidator(as_tuple),
]


class NetworkOptions(Frozen):
    """Options of the network that is grafted: some of `timm.create_model`'s.

    They say how a network is built; none names a file or a hub. An option that is not given has
    the network's own default. timm documents what an option means. Not every network accepts
    every option.

    Attributes:
        img_size, patch_size: in pixels, one number or (H, W). A network that takes images of any
            size has `img_size` for its static keys.
        window_size: in tokens, one number or (H, W).
        in_chans, num_classes: channels of an image; classes, 0 = no classifier.
        embed_dim, depth, depths, num_heads, head_dim: widths and depths; in Swin, `depths` and
            `num_heads` have one number per stage.
        embed_dims, downscaling_factors: one number per stage, of networks that have such an option.
        drop_rate, ..., drop_path_rate: 0 to below 1.
    """

    img_size: _Sides = 224
    patch_size: _Sides = 16
    window_size: _Sides = 7
    in_chans: Annotated[int, Field(ge=1, le=4_096)] = 3
    num_classes: Annotated[int, Field(ge=0, le=1_000_000)] = 1000
    global_pool: Literal["", "avg", "avgmax", "max", "token", "map"] = "token"
    embed_dim: Annotated[int, Field(ge=1, le=16_384)] = 768
    embed_dims: _Widths = ()
    downscaling_factors: _Stages = ()
    depth: _Layers = 12
    depths: _Stages = ()
    num_heads: _EachStage = 12
    head_dim: _Layers | None = None
    mlp_ratio: _Ratio = 4.0
    qkv_bias: bool = True
    proj_bias: bool = True
    qk_norm: bool = False
    scale_attn_norm: bool = False
    scale_mlp_norm: bool = False
    init_values: Annotated[float, Field(ge=0.0, le=1e3)] | None = None
    class_token: bool = True
    reg_tokens: Annotated[int, Field(ge=0, le=1_000)] = 0
    pos_embed: Literal["", "none", "learn"] = "learn"
    no_embed_class: bool = False
    pre_norm: bool = False
    final_norm: bool = True
    fc_norm: bool | None = None
    pool_include_prefix: bool = False
    dynamic_img_size: bool = False
    dynamic_img_pad: bool = False
    always_partition: bool = False
    strict_img_size: bool = True
    depth_token_only: _Layers = 2
    mlp_ratio_token_only: _Ratio = 4.0
    drop_rate: _Rate = 0.0
    pos_drop_rate: _Rate = 0.0
    patch_drop_rate: _Rate = 0.0
    proj_drop_rate: _Rate = 0.0
    attn_drop_rate: _Rate = 0.0
    drop_path_rate: _Rate = 0.0
    weight_init: Literal["skip", "reset", "jax", "jax_nlhb", "moco", ""] = ""
    fix_init: bool = False
    norm_layer: _LayerName | None = None
    embed_norm_layer: _LayerName | None = None
    act_layer: _LayerName | None = None

    def given(self) -> dict[str, Any]:
        """The options that were given, for timm."""
        return self.model_dump(exclude_unset=True)


class GraftFile(Frozen):
    """graft.yaml: a network, its options, and its grafts.

    Attributes:
        model: name of a timm model, or of one that `vitnas.nn.graft.networks` adds.
        options: options of the network, e.g. `{img_size: 32, num_classes: 10}`.
        grafts: the grafts, in the order in which they were made; none = the network as it is.
    """

    model: str
    options: NetworkOptions = NetworkOptions()
    grafts: Annotated[tuple[GraftConfig, ...], BeforeValidator(as_tuple)]

    @property
    def name(self) -> str:
        """For titles."""
        return f"{self.model} with grafts" if self.grafts else self.model

    @property
    def image_hw(self) -> tuple[int, int]:
        """(H, W) in pixels; as `in_chans` and `num_classes`, once these options are given."""
        size = self.options.img_size
        return (size, size) if isinstance(size, int) else size

    @property
    def in_chans(self) -> int:
        return self.options.in_chans

    @property
    def num_classes(self) -> int:
        return self.options.num_classes

    @property
    def key(self) -> str:
        """Twelve hex digits that tell two files apart."""
        text = json.dumps(self.to_tree(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def line(self) -> str:
        """The network and its grafts, for people: `vit_tiny_patch16_224 + cska in last:4`."""
        return " + ".join([self.model, *(config.line() for config in self.grafts)])

    def to_tree(self) -> dict[str, Any]:
        """The file as a plain tree."""
        options = self.options.model_dump(mode="json", exclude_unset=True)
        grafts = [config.to_tree() for config in self.grafts]
        return {"model": self.model, "options": options, "grafts": grafts}

    def changed(self, **options: Any) -> GraftFile:
        """The same grafts on the network with other options.

        Raises:
            ConfigError: an option has no such value.
        """
        return validate(
            GraftFile, {**self.to_tree(), "options": {**self.options.given(), **options}}
        )
