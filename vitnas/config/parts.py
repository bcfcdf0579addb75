"""The parts of a network as a model file says them: stem, stages, re-attention, head.

Frozen pydantic models, unknown keys forbidden, no torch. Field names are timm's where timm has
the thing. Every field says here what it means; `vitnas schema fields` makes the tables of
`space/README.md` of it. When a field matters stands in `matters`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from vitnas.config import rules
from vitnas.config.files import RuleError
from vitnas.config.mixers import (
    MIXERS,
    Given,
    MixerFacts,
    checked_name,
    checked_options,
    mixer_named,
    unpacked,
)
from vitnas.config.notation import parse_schedule
from vitnas.plugins import PATH

_MIXER_SCHEMA = {
    "anyOf": [
        {"enum": list(MIXERS)},
        {"type": "string", "pattern": PATH, "description": "Another package's: module:Class."},
        {
            "type": "object",
            "required": ["mixer"],
            "description": "With options: {mixer: NAME}.",
        },
    ]
}
TokenMixer = Annotated[str, AfterValidator(checked_name), WithJsonSchema(_MIXER_SCHEMA)]
Residual = Literal["plain", "lrc", "scale"]
Norm = Literal["layernorm", "layernorm_nobias", "batchnorm"]
Positive = Annotated[int, Field(ge=1, le=1_000_000)]
Ratio = Annotated[float, Field(ge=0.0, le=16.0)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Epsilon = Annotated[float, Field(gt=0.0, le=1.0)]


def _as_groups(value: Any) -> Any:
    """A pass list may be written `[8, 2]` or, as in the papers' tables, `"[8,2]"`."""
    if isinstance(value, str):
        try:
            brackets = parse_schedule(value)
        except ValueError as error:
            raise RuleError(str(error), value=value) from None
        if len(brackets) != 1:
            raise RuleError("a stage has one bracket", value=value)
        return brackets[0]
    return as_tuple(value)


def as_tuple(value: Any) -> Any:
    """YAML has lists, a frozen model holds tuples."""
    return tuple(value) if isinstance(value, list) else value


Groups = Annotated[
    tuple[Positive, ...], Field(min_length=1, max_length=100), BeforeValidator(_as_groups)
]
ImageSize = Annotated[Positive | tuple[Positive, Positive], BeforeValidator(as_tuple)]


class Frozen(BaseModel):
    """Immutable, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class StemConfig(Frozen):
    """From pixels to the tokens of the first stage."""

    kind: Literal["patch", "conv", "metaformer", "deepvit", "bvit"] = Field(
        "patch",
        description="`patch`: a convolution with kernel = stride (ViT); `conv`: 3x3 "
        "convolutions, each with BN and ReLU, one of stride 2 per factor of two (SReT, Table 12); "
        "`metaformer`: one overlapping convolution and a norm (CAFormer); `deepvit`: "
        "7x7 of stride 2, 3x3, then a patch convolution (DeepViT-S and -L); `bvit`: 7x7 of stride "
        "2 that keeps the channels of the image, then a patch convolution (BViT's code; its paper "
        "has `patch`)",
    )
    stride: Positive = Field(16, description="pixels per token side")
    width: Positive = Field(64, description="channels inside the `deepvit` stem")
    convs: Annotated[int, Field(ge=1, le=16)] | None = Field(
        None,
        description="convolutions of the `conv` stem; those after the last factor of two have "
        "stride 1, as in ResNet-D and CoAtNet; null: one per factor of two",
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
        """How many of the convolutions of the `conv` stem have stride 2: the first ones."""
        return self.stride.bit_length() - 1

    def default_widths(self, dim: int) -> tuple[int, ...]:
        """Channels between the convolutions of the `conv` stem where `widths` is null."""
        return (max(1, dim // 2), *[dim] * (self.convolutions - 2))[: self.convolutions - 1]

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
        count = self.convolutions - 1
        if self.kind == "conv" and self.widths is not None and len(self.widths) != count:
            convs = f" and convs {self.convs}" if self.convs else ""
            rule = f"must name {count} widths: a conv stem of stride {self.stride}{convs} has "
            rule += f"{count + 1} convolutions, the last one with embed_dim channels"
            raise RuleError(rule, "widths", list(self.widths))
        return self


class StageConfig(Frozen):
    """Blocks at one resolution."""

    token_mixer: TokenMixer = Field(
        description="what mixes the tokens: a name of vitnas's, one that an installed package "
        "announces, or the path `package.module:Class` of another package's"
    )
    mixer_options: dict[str, Any] = Field(
        Given(), description="fields that another package's mixer has of its own"
    )
    depth: Positive = Field(1, description="blocks with weights of their own")
    embed_dim: Positive = Field(description="channels C")
    num_heads: Positive | None = Field(
        None, description="heads of attention; null: `embed_dim` / `head_dim`"
    )
    head_dim: Positive | None = Field(
        None, description="channels of a head, instead of `num_heads`; null: 32"
    )
    groups: Groups = Field(
        (1,),
        description="token groups g of each pass through a block, as `[8, 2]`; its length is the "
        "number of passes (SReT, Section 4.2)",
    )
    mlp_ratio: Ratio = Field(
        4.0, description="hidden channels of the MLP per channel; 0: without MLP"
    )
    nll_ratio: Ratio = Field(
        0.0,
        description="hidden channels per channel of the non-linear layer after every pass (SReT "
        "Eq. 5); 0: without",
    )
    residual: Residual | None = Field(
        None, description="replaces the network's in this stage; null: the network's"
    )
    norm: Norm | None = Field(
        None, description="replaces the network's in this stage's blocks; null: the network's"
    )
    expansion: Annotated[float, Field(gt=0.0, le=16.0)] | None = Field(
        None,
        description="hidden channels per channel of `dwconv` and `mbconv`; null: 2 (CAFormer) and "
        "4; `mbconv` with 1 has no first convolution (MobileNetV2)",
    )
    kernel_size: Positive | None = Field(
        None,
        description="odd side of the kernel of `dwconv`, `mbconv` and `pool`; null: 7, 3 and 3",
    )
    se_ratio: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.0,
        description="channels of squeeze-excitation in `mbconv` per channel of the stage, at least "
        "one (EfficientNet: 0.25); 0: without",
    )
    conv_act: Literal["relu6", "hard_swish", "silu"] = Field(
        "relu6",
        description="activation of `mbconv`: MobileNetV2's, MobileNetV3's or EfficientNet's",
    )
    tokens_dim: Positive | None = Field(
        None, description="hidden tokens of the `mlp` mixer; null: C / 2"
    )
    qk_scale: bool = Field(
        True, description="whether the logits of attention are divided by sqrt(head_dim)"
    )
    key_init: Literal["trunc_normal", "randn"] = Field(
        "trunc_normal",
        description="initial static key; `randn` (the code of the SKA paper) saturates the softmax",
    )
    q_proj: bool = Field(
        True, description="whether the query is a projection of the tokens, or the tokens (SKA)"
    )

    @model_validator(mode="before")
    @classmethod
    def _unpack_mixer(cls, tree: Any) -> Any:
        return unpacked(tree)

    @field_validator("mixer_options")
    @classmethod
    def _mixer_has_options(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        name = info.data.get("token_mixer")
        return given if name is None else checked_options(name, given)

    @property
    def facts(self) -> MixerFacts:
        """What has to be known of the token mixer."""
        return mixer_named(self.token_mixer).facts

    @cached_property
    def heads(self) -> int:
        """Number of heads; 0 for a mixer without."""
        if not self.facts.heads:
            return 0
        return rules.heads_of(self.embed_dim, self.num_heads, self.head_dim)

    @property
    def passes(self) -> int:
        return len(self.groups)

    @property
    def has_nll(self) -> bool:
        return self.nll_ratio > 0 and len(self.groups) > 1

    @property
    def has_mlp(self) -> bool:
        return self.mlp_ratio > 0 and not self.facts.whole

    @property
    def has_norm(self) -> bool:
        """Whether the stage's blocks have norms of the kind that `norm` names."""
        return not self.facts.whole

    @property
    def hidden_channels(self) -> int:
        """Channels inside a convolution that expands them."""
        return int((self.expansion or self.facts.expansion) * self.embed_dim)

    @property
    def se_channels(self) -> int:
        """Channels inside squeeze-excitation; 0 without it."""
        return max(1, int(self.se_ratio * self.embed_dim)) if self.se_ratio else 0

    @cached_property
    def kernel(self) -> int:
        return self.kernel_size or self.facts.kernel_size

    @property
    def hidden_tokens(self) -> int:
        return self.tokens_dim or rules.default_tokens_dim(self.embed_dim)

    @model_validator(mode="after")
    def _widths_fit(self) -> StageConfig:
        dim, size = self.embed_dim, self.kernel_size
        if self.facts.heads:
            problem = rules.heads_problem(dim, self.num_heads, self.head_dim)
            if problem:
                raise RuleError(*problem)
        if size is not None and size % 2 == 0:
            raise RuleError("must be odd", "kernel_size", size, size + 1)
        for name in ("mlp_ratio", "nll_ratio", "expansion"):
            ratio = self.__dict__[name]
            if ratio and ratio * dim < 1:
                rule = f"leaves no hidden channel at embed_dim {dim}"
                raise RuleError(rule, name, ratio, 1.0)
        return self


class ReattentionConfig(Frozen):
    """How maps are mixed across heads (DeepViT Eq. 3): scale * Norm(Theta^T A)."""

    norm: Literal["batch", "layer", "none"] = Field("batch", description="the norm over the heads")
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
        True, description="whether values of all layers are used, or the last layer's (Table II)"
    )
    with_qk: bool = Field(
        True,
        description="whether queries and keys of all layers are used, or the last layer's "
        "(Table II)",
    )


class HeadConfig(Frozen):
    """The last norm and the classifier."""

    kind: Literal["linear", "mlp"] = Field(
        "linear",
        description="one layer, or CAFormer's `mlp` (4C hidden, squared ReLU, norm)",
    )
    norm_eps: Epsilon = Field(1e-6, description="epsilon of the last norm")
    mlp_norm_eps: Epsilon = Field(
        1e-6, description="epsilon of the norm inside `mlp`; 1e-5 in MetaFormer's code"
    )
