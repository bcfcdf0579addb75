"""The parts of a network as a model file says them: stem, re-attention, head; the types of fields.

Frozen pydantic models, unknown keys forbidden, no torch. Field names are timm's where timm has
the thing. Every field has its meaning here; `vitnas schema fields` makes the tables of
`space/README.md` from it. `matters` says when a field matters; `stage` has the fields of a stage.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from vitnas.config import rules
from vitnas.config.collected import Layers
from vitnas.config.findings import FieldError, RuleError

Residual = Literal["plain", "lrc", "lrc_branch", "lrc_identity", "scale"]
Norm = Literal["layernorm", "layernorm_nobias", "batchnorm"]
Downsampling = Literal[
    "conv", "metaformer", "cvt", "patch", "separable", "mbconv", "maxpool", "vgg", "crelu"
]
POOLED: tuple[Downsampling, ...] = ("maxpool", "vgg", "crelu")
"""Layers between stages that halve the grid by pooling."""
Pooling = Literal["max", "max_blur"]
Positive = Annotated[int, Field(ge=1, le=1_000_000)]
Ratio = Annotated[float, Field(ge=0.0, le=16.0)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Epsilon = Annotated[float, Field(gt=0.0, le=1.0)]


def as_tuple(value: Any) -> Any:
    """YAML has lists, a frozen model holds tuples."""
    return tuple(value) if isinstance(value, list) else value


def _odd(side: int) -> int:
    if side % 2 == 0:
        raise FieldError("must be odd", "", side, side + 1)
    return side


Kernel = Annotated[Positive, AfterValidator(_odd)]
ImageSize = Annotated[Positive | tuple[Positive, Positive], BeforeValidator(as_tuple)]


class NotSettled(Exception):
    """A field of a network that is known in part has no value yet (see `draft`)."""


class Frozen(BaseModel):
    """Immutable, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class StemConfig(Frozen):
    """From pixels to the tokens of the first stage."""

    kind: Literal["patch", "conv", "metaformer", "deepvit", "bvit", "shifted"] = Field(
        "patch",
        description="`patch`: a convolution with kernel = stride (ViT); `conv`: 3x3 "
        "convolutions, each with BN and ReLU, one of stride 2 per factor of two (SReT, Table 12); "
        "`metaformer`: one overlapping convolution and a norm (CAFormer); `deepvit`: "
        "7x7 of stride 2, 3x3, then a patch convolution (DeepViT-S and -L); `bvit`: 7x7 of stride "
        "2 that keeps the channels of the image, then a patch convolution (BViT's code; its paper "
        "has `patch`); `shifted`: patches of the image and of four copies, each moved by a pixel, "
        "a norm and a linear layer (shifted patch tokenization in vit-pytorch, SKA's ViT at 32 px)",
    )
    stride: Positive = Field(16, description="pixels per token side")
    width: Positive = Field(64, description="channels inside the `deepvit` stem")
    convs: Annotated[int, Field(ge=1, le=16)] | None = Field(
        None,
        description="how many convolutions the `conv` stem has; null: one of stride 2 per factor "
        "of two. Further ones follow these and have stride 1 (ResNet-D, CoAtNet)",
    )
    pools: Annotated[int, Field(ge=0, le=16)] = Field(
        0,
        description="how many of the convolutions of the `conv` stem that halve the grid do so by "
        "2x2 pooling behind their ReLU: the last ones, with stride 1",
    )
    act: Literal["relu", "crelu"] = Field(
        "relu",
        description="behind each convolution of the `conv` stem; `crelu`: relu(x) and relu(-x) "
        "side by side, so that half as many filters, for half the FLOPs, give as many channels "
        "(Shang et al.)",
    )
    filters: Literal["random", "dct"] = Field(
        "random",
        description="with which weights the first convolution of the `conv` stem starts: "
        "PyTorch's, or the lowest frequencies of a discrete cosine transform; both are trained",
    )
    widths: Annotated[tuple[Positive, ...] | None, BeforeValidator(as_tuple)] = Field(
        None,
        description="channels after each convolution of the `conv` stem but the last; null: half "
        "of `embed_dim` after the first, `embed_dim` after the others",
    )

    @property
    def convolutions(self) -> int:
        """How many convolutions the `conv` stem has."""
        return self.convs or max(1, self.halvings)

    @property
    def halvings(self) -> int:
        """How many of the convolutions of the `conv` stem halve the grid: the first ones."""
        return rules.halvings_of(self.stride)

    def is_pooled(self, index: int) -> bool:
        """Whether pooling stands behind this convolution of the `conv` stem."""
        return self.halvings - self.pools <= index < self.halvings

    def stride_of(self, index: int) -> int:
        """The stride of this convolution of the `conv` stem."""
        return 2 if index < self.halvings - self.pools else 1

    def num_filters(self, width: int) -> int:
        """Filters of a convolution of the `conv` stem with so many channels after it."""
        return rules.halved(width) if self.act == "crelu" else width

    def default_widths(self, dim: int) -> tuple[int, ...]:
        """Channels between the convolutions of the `conv` stem where `widths` is null."""
        between = self.convolutions - 1
        return (max(1, dim // 2), *[dim] * (between - 1))[:between]

    def conv_widths(self, dim: int) -> tuple[int, ...]:
        """Channels after each convolution of the `conv` stem; `dim` after the last."""
        return (*(self.widths or self.default_widths(dim)), dim)

    @model_validator(mode="after")
    def _stride_fits(self) -> StemConfig:
        if self.kind in ("conv", "deepvit", "bvit") and self.stride & (self.stride - 1):
            nearest = 1 << (self.stride.bit_length() - 1)
            raise RuleError("must be a power of two", "stride", self.stride, nearest)
        if self.kind in ("metaformer", "deepvit", "bvit") and self.stride < 2:
            raise RuleError(f"a {self.kind} stem has stride 2 or more", "stride", self.stride, 2)
        if self.kind == "conv" and self.convolutions < self.halvings:
            rule = f"a conv stem of stride {self.stride} has {self.halvings} convolutions or more"
            raise RuleError(rule, "convs", self.convs, self.halvings)
        if self.kind == "conv" and (problem := rules.pools_fit(self.pools, self.stride)):
            raise RuleError(problem, "pools", self.pools, self.halvings)
        count = self.convolutions - 1
        if self.kind == "conv" and self.widths is not None and len(self.widths) != count:
            convs = f" and convs {self.convs}" if self.convs else ""
            rule = f"must name {count} widths: a conv stem of stride {self.stride}{convs} has "
            rule += f"{count + 1} convolutions, the last one with embed_dim channels"
            raise RuleError(rule, "widths", list(self.widths))
        return self


MapActivation = Literal["softmax", "gelu", "relu", "star_relu"]
"""What makes the map of attention from its logits."""


class ReattentionConfig(Frozen):
    """How maps are mixed across heads (DeepViT Eq. 3): scale * Norm(Theta^T A)."""

    norm: Literal["batch", "layer", "none"] = Field("batch", description="the norm over the heads")
    norm_eps: Epsilon = Field(
        1e-5,
        description="epsilon of the `layer` norm; 1e-5 in vit-pytorch. Entries of a map are so "
        "small that it has an effect",
    )
    bias: bool = Field(True, description="whether Theta has a bias")
    scale: Annotated[float, Field(gt=0.0, le=1e3)] = Field(
        1.0, description="what the mixed map is multiplied by; in DeepViT's code, not in its paper"
    )
    source: Literal["own", "shared"] = Field(
        "own",
        description="`own`: the map of the block itself; `shared`: the map of the last block "
        "before those with re-attention, which then have no query and no key (DeepViT Eq. 5)",
    )


class TemperatureConfig(Frozen):
    """Softmax temperature tau of attention: logits / (tau sqrt(d)) (DeepViT Eq. 4, Table 5)."""

    kind: Literal["none", "linear", "learnable"] = Field(
        "none",
        description="`none`: 1 everywhere; `linear`: falls from 1 in the first attention block to "
        "`last` in the last one; `learnable`: one number for each block, starting at 1",
    )
    last: Annotated[float, Field(gt=0.0, le=10.0)] = Field(
        0.5, description="where `linear` ends; the paper gives no value"
    )


class BroadConfig(Frozen):
    """Broad attention over all layers (BViT Eq. 5-8)."""

    gamma: Annotated[float, Field(ge=0.0, le=1e6)] = Field(
        0.0, description="weight of the broad feature; 0: off (BViT Table I)"
    )
    layers: Layers | None = Field(
        None,
        description="which of the layers with query, key and value are collected: `all`; `stages`, "
        "the last one of each stage (BViT's Swin and LVT forms); `last:4`, the last four; "
        "`every:3`, each third, counted back from the last one. null: `all` in a network of one "
        "stage, else `stages`",
    )
    pool: Literal["official", "layers"] = Field(
        "official",
        description="`official` averages adjacent channels of (head, layer, dim), as BViT's code "
        "does; `layers` averages the same channel over the layers",
    )
    scale: Literal["head_dim", "embed_dim"] = Field(
        "head_dim",
        description="the logits are divided by its square root; `embed_dim` in BViT Eq. 6",
    )
    with_v: bool = Field(
        True,
        description="values of all layers are used; false: those of the last layer alone (Table "
        "II)",
    )
    with_qk: bool = Field(
        True,
        description="queries and keys of all layers are used; false: those of the last layer alone "
        "(Table II)",
    )


class HeadConfig(Frozen):
    """The last norm and the classifier."""

    kind: Literal["linear", "mlp"] = Field(
        "linear",
        description="`linear`: one layer; `mlp`: CAFormer's (4C hidden channels, squared ReLU, "
        "norm)",
    )
    norm: Literal["layernorm", "none"] = Field(
        "layernorm",
        description="the last norm: of the pooled vector, or of all tokens before the class token "
        "is taken. `none` suits stages of `mbconv`, whose blocks end in BatchNorm",
    )
    norm_eps: Epsilon = Field(1e-6, description="epsilon of the last norm")
    mlp_norm_eps: Epsilon = Field(
        1e-6, description="epsilon of the norm inside `mlp`; 1e-5 in MetaFormer's code"
    )
