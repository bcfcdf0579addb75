"""What a network is: the one language that models, spaces and exports are written in.

Frozen pydantic models, unknown keys forbidden, no torch. Field names are timm's where timm has
the thing. Rules across fields live in `rules`; the semantics of every field are in the blocks
under `vitnas/nn`, the file format in `space/README.md`.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

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
from vitnas.config.files import RuleError, dump_yaml, read_yaml, validate, write_text
from vitnas.config.mixers import (
    MIXERS,
    Given,
    MixerFacts,
    checked_name,
    checked_options,
    mixer_named,
    unpacked,
)
from vitnas.config.notation import fit_schedule, format_schedule, parse_schedule
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
    return tuple(value) if isinstance(value, list) else value


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Groups = Annotated[
    tuple[Positive, ...], Field(min_length=1, max_length=100), BeforeValidator(_as_groups)
]
ImageSize = Annotated[Positive | tuple[Positive, Positive], BeforeValidator(_as_tuple)]


class Frozen(BaseModel):
    """Immutable, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class StemConfig(Frozen):
    """From pixels to the first stage's tokens, `stride` pixels a token side.

    Attributes:
        kind: `patch` = one convolution with kernel = stride (ViT); `conv` = a 3x3 stride-2
            convolution with BN and ReLU per factor of two (SReT, Table 12); `metaformer` = one
            overlapping convolution and a norm (CAFormer); `deepvit` = 7x7 stride 2, 3x3, then a
            patch convolution (DeepViT-S and -L); `bvit` = 7x7 stride 2 that keeps the channels of
            the image, then a patch convolution (BViT's code; its paper has `patch`).
        stride: pixels per token side.
        width: channels inside the `deepvit` stem.
        widths: channels after each convolution of the `conv` stem but the last; by default half
            of embed_dim after the first, embed_dim after the others.
    """

    kind: Literal["patch", "conv", "metaformer", "deepvit", "bvit"] = "patch"
    stride: Positive = 16
    width: Positive = 64
    widths: Annotated[tuple[Positive, ...] | None, BeforeValidator(_as_tuple)] = None

    @property
    def convolutions(self) -> int:
        """How many convolutions the `conv` stem has."""
        return max(1, self.stride.bit_length() - 1)

    def conv_widths(self, dim: int) -> tuple[int, ...]:
        """Channels after each convolution of the `conv` stem; `dim` after the last."""
        count = self.convolutions
        between = self.widths or (max(1, dim // 2), *[dim] * (count - 2))[: count - 1]
        return (*between, dim)

    @model_validator(mode="after")
    def _stride_fits(self) -> StemConfig:
        if self.kind in ("conv", "deepvit", "bvit") and self.stride & (self.stride - 1):
            nearest = 1 << (self.stride.bit_length() - 1)
            raise RuleError("must be a power of two", "stride", self.stride, nearest)
        if self.kind in ("metaformer", "deepvit", "bvit") and self.stride < 2:
            raise RuleError(f"a {self.kind} stem has stride 2 or more", "stride", self.stride, 2)
        count = self.convolutions - 1
        if self.kind == "conv" and self.widths is not None and len(self.widths) != count:
            rule = f"must name {count} widths: a conv stem of stride {self.stride} has {count + 1} "
            rule += "convolutions, the last one with embed_dim channels"
            raise RuleError(rule, "widths", list(self.widths))
        return self


class StageConfig(Frozen):
    """Blocks at one resolution.

    Attributes:
        token_mixer: what mixes the tokens: a name of vitnas's, one that an installed package
            announces, or the path `package.module:Class` of another package's.
        mixer_options: fields that another package's mixer has of its own.
        depth: blocks with weights of their own.
        embed_dim: channels C.
        num_heads, head_dim: heads of an attention mixer; give one (default head_dim 32).
        groups: token groups g of each pass through a block; its length is the number of passes.
        mlp_ratio: hidden channels of the MLP per channel; 0 leaves the MLP out.
        nll_ratio: hidden channels of the non-linear layer after every pass (SReT Eq. 5), used
            with two passes or more; 0 leaves it out.
        residual: overrides the network's.
        expansion, kernel_size: of the `dwconv` mixer; `kernel_size` also of `pool` (default 7, 3).
        tokens_dim: hidden tokens of the `mlp` mixer; default C // 2.
        qk_scale: whether logits are divided by sqrt(head_dim).
        key_init: initial static key of `ska` and `cska`; `randn` (the paper's code) saturates.
        q_proj: of `ska` and `cska`: whether the query is a projection of the tokens, or the tokens.
    """

    token_mixer: TokenMixer
    mixer_options: dict[str, Any] = Given()
    depth: Positive = 1
    embed_dim: Positive
    num_heads: Positive | None = None
    head_dim: Positive | None = None
    groups: Groups = (1,)
    mlp_ratio: Ratio = 4.0
    nll_ratio: Ratio = 0.0
    residual: Residual | None = None
    expansion: Annotated[float, Field(gt=0.0, le=16.0)] = 2.0
    kernel_size: Positive | None = None
    tokens_dim: Positive | None = None
    qk_scale: bool = True
    key_init: Literal["trunc_normal", "randn"] = "trunc_normal"
    q_proj: bool = True

    @model_validator(mode="before")
    @classmethod
    def _unpack_mixer(cls, tree: Any) -> Any:
        return unpacked(tree)

    @field_validator("mixer_options")
    @classmethod
    def _mixer_has_options(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        name = info.data.get("token_mixer")
        return given if name is None else checked_options(name, given)

    @cached_property
    def facts(self) -> MixerFacts:
        """What has to be known of the token mixer."""
        return mixer_named(self.token_mixer).facts

    @cached_property
    def heads(self) -> int:
        """Number of heads; 0 for a mixer without."""
        if not self.facts.heads:
            return 0
        return self.num_heads or self.embed_dim // (self.head_dim or 32)

    @property
    def passes(self) -> int:
        return len(self.groups)

    @property
    def has_nll(self) -> bool:
        return self.nll_ratio > 0 and len(self.groups) > 1

    @property
    def kernel(self) -> int:
        return self.kernel_size or self.facts.kernel_size

    @property
    def hidden_tokens(self) -> int:
        return self.tokens_dim or max(1, self.embed_dim // 2)

    @model_validator(mode="after")
    def _heads_divide(self) -> StageConfig:
        if self.facts.heads:
            width, heads, dim = self.embed_dim, self.num_heads, self.head_dim
            if heads and width % heads:
                nearest = rules.nearest_divisor(width, heads)
                raise RuleError(f"must divide embed_dim {width}", "num_heads", heads, nearest)
            if not heads and width % (dim or 32):
                nearest = rules.nearest_divisor(width, dim or 32)
                raise RuleError(f"must divide embed_dim {width}", "head_dim", dim or 32, nearest)
            if heads and dim and heads * dim != width:
                rule = f"{heads} heads of {dim} are not embed_dim {width}; give one of both"
                raise RuleError(rule, "head_dim", dim, width // heads)
        if self.kernel % 2 == 0:
            raise RuleError("must be odd", "kernel_size", self.kernel, self.kernel + 1)
        return self

    @model_validator(mode="after")
    def _hidden_widths_exist(self) -> StageConfig:
        for name in ("mlp_ratio", "nll_ratio", "expansion"):
            ratio: float = getattr(self, name)
            if 0 < ratio * self.embed_dim < 1:
                rule = f"leaves no hidden channel at embed_dim {self.embed_dim}"
                raise RuleError(rule, name, ratio, 1.0)
        return self


class ReattentionConfig(Frozen):
    """How maps are mixed across heads (DeepViT Eq. 3): scale * Norm(Theta^T A).

    Attributes:
        norm: over the heads.
        bias: whether Theta has one.
        scale: what the mixed map is multiplied by; not in the paper, in its code.
        source: whose map A is: the block's `own`, or `shared`: the map of the last block before
            those with re-attention, which then have neither query nor key (attention reuse, Eq. 5).
    """

    norm: Literal["batch", "layer", "none"] = "batch"
    bias: bool = True
    scale: Annotated[float, Field(gt=0.0, le=1e3)] = 1.0
    source: Literal["own", "shared"] = "own"


class TemperatureConfig(Frozen):
    """Softmax temperature tau of attention, logits / (tau sqrt(d)) (DeepViT Eq. 4, Table 5).

    Attributes:
        kind: `none` = 1 everywhere; `linear` = falls from 1 in the first attention block to `last`
            in the last one; `learnable` = a scalar of each block's own, starting at 1.
        last: of `linear`; the paper does not give its value.
    """

    kind: Literal["none", "linear", "learnable"] = "none"
    last: Annotated[float, Field(gt=0.0, le=10.0)] = 0.5


class BroadConfig(Frozen):
    """Broad attention over all layers (BViT Eq. 5-8), weighted by gamma; 0 turns it off.

    Attributes:
        gamma: weight of the broad feature.
        pool: `official` averages adjacent channels of (head, layer, dim); `layers` averages the
            same channel over the layers.
        scale: what the logits are divided by the root of; the paper's Eq. 6 says `embed_dim`.
        with_v, with_qk: Table II's parts; without, the last layer's alone.
    """

    gamma: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    pool: Literal["official", "layers"] = "official"
    scale: Literal["head_dim", "embed_dim"] = "head_dim"
    with_v: bool = True
    with_qk: bool = True


class HeadConfig(Frozen):
    """The last norm and the classifier.

    Attributes:
        kind: `linear`, or CAFormer's `mlp` (4C hidden, squared ReLU, norm).
        norm_eps: epsilon of the last norm.
        mlp_norm_eps: epsilon of the norm inside `mlp`; 1e-5 in MetaFormer's own code.
    """

    kind: Literal["linear", "mlp"] = "linear"
    norm_eps: Epsilon = 1e-6
    mlp_norm_eps: Epsilon = 1e-6


class ModelConfig(Frozen):
    """A whole network. `groups` may be written once as `"[8,2][4,1][1,1]"` or in each stage.

    The drop rates are timm's: `drop_rate` before the classifier, `pos_drop_rate` after the position
    table, `proj_drop_rate` after the projections of attention and in the MLPs, `attn_drop_rate` on
    attention maps, `drop_path_rate` on branches, rising to this value at the last block.
    `branch_scale` multiplies every residual branch: 2 in DeepViT's code for -S and -L, which the
    paper does not say. `norm_eps` is the epsilon of every layer norm before the head: 1e-6 in the
    papers' code but for BViT's, which has PyTorch's 1e-5.
    """

    shorthand_keys: ClassVar[tuple[str, ...]] = ("groups",)

    name: str = "network"
    img_size: ImageSize = 224
    in_chans: Positive = 3
    num_classes: Positive = 1000
    stem: StemConfig = StemConfig()
    stages: Annotated[
        tuple[StageConfig, ...], Field(min_length=1, max_length=5), BeforeValidator(_as_tuple)
    ]
    downsample: Literal["conv", "metaformer", "patch"] = "conv"
    permute: Literal["always", "second", "never"] = "always"
    residual: Residual = "plain"
    branch_scale: Annotated[float, Field(gt=0.0, le=1e3)] = 1.0
    norm: Literal["layernorm", "layernorm_nobias"] = "layernorm"
    norm_eps: Epsilon = 1e-6
    mlp_act: Literal["gelu", "star_relu"] = "gelu"
    mlp_bias: bool = True
    qkv_bias: bool = True
    proj_bias: bool = True
    pos_embed: Literal["learned", "none"] = "learned"
    class_token: bool = False
    global_pool: Literal["avg", "token"] | None = None
    head: HeadConfig = HeadConfig()
    drop_rate: Rate = 0.0
    pos_drop_rate: Rate = 0.0
    proj_drop_rate: Rate = 0.0
    attn_drop_rate: Rate = 0.0
    drop_path_rate: Rate = 0.0
    temperature: TemperatureConfig = TemperatureConfig()
    reattention_blocks: Annotated[int, Field(ge=0)] = 0
    reattention: ReattentionConfig = ReattentionConfig()
    broad: BroadConfig = BroadConfig()

    @model_validator(mode="before")
    @classmethod
    def _spread_schedule(cls, tree: Any) -> Any:
        """`groups` of the network goes to its stages, one bracket each."""
        if not isinstance(tree, dict) or "groups" not in tree:
            return tree
        tree = dict(tree)
        schedule, stages = tree.pop("groups"), tree.get("stages")
        try:
            if not isinstance(schedule, str):
                raise ValueError('must be text like "[8,2][4,1][1,1]"')
            brackets = parse_schedule(schedule)
        except ValueError as error:
            raise RuleError(str(error), "groups", schedule) from None
        if not isinstance(stages, (list, tuple)) or not all(isinstance(s, dict) for s in stages):
            return tree  # the field's own error is the better one
        if len(brackets) != len(stages):
            rule = f"{len(brackets)} brackets for {len(stages)} stages"
            raise RuleError(rule, "groups", schedule, fit_schedule(brackets, len(stages)))
        for index, stage in enumerate(stages):
            if "groups" in stage:
                rule = "groups are given for the network and for this stage; give one of both"
                raise RuleError(rule, f"stages[{index}].groups", stage["groups"])
        tree["stages"] = [{**s, "groups": g} for s, g in zip(stages, brackets, strict=True)]
        return tree

    @model_validator(mode="after")
    def _stages_fit_together(self) -> ModelConfig:
        from vitnas.config.checks import check_network

        check_network(self)
        return self

    @cached_property
    def image_hw(self) -> tuple[int, int]:
        size = self.img_size
        return (size, size) if isinstance(size, int) else size

    @cached_property
    def grids(self) -> tuple[tuple[int, int], ...]:
        """(H, W) of the tokens in each stage; every stage halves the one before."""
        height, width = self.image_hw
        stride = self.stem.stride
        return tuple(
            (height // (stride << index), width // (stride << index))
            for index in range(len(self.stages))
        )

    @property
    def num_prefix_tokens(self) -> int:
        return int(self.class_token)

    @property
    def pool(self) -> str:
        """How tokens become one vector: `global_pool`, else the class token if there is one."""
        return self.global_pool or ("token" if self.class_token else "avg")

    def num_tokens(self, stage: int) -> int:
        """Tokens N in a stage, the class token included."""
        height, width = self.grids[stage]
        return height * width + self.class_token

    def residual_of(self, stage: StageConfig) -> Residual:
        return stage.residual or self.residual

    @cached_property
    def reattention_plan(self) -> tuple[int, ...]:
        """How many blocks at the end of each stage have re-attention: the network's last k."""
        left = self.reattention_blocks
        plan = []
        for stage in reversed(self.stages):
            taken = min(left, stage.depth) if stage.facts.reattention else 0
            left -= taken
            plan.append(taken)
        return tuple(reversed(plan))

    @cached_property
    def map_source(self) -> int | None:
        """Index in the network of the block whose map later ones use; None where none is shared."""
        if not self.reattention_blocks or self.reattention.source == "own":
            return None
        index = next(i for i, taken in enumerate(self.reattention_plan) if taken)
        before = sum(stage.depth for stage in self.stages[: index + 1])
        return before - self.reattention_plan[index] - 1

    @cached_property
    def attention_span(self) -> tuple[int, int]:
        """Index in the network of the first and of the last attention block; (0, 0) without one."""
        maps = [stage.facts.maps for stage in self.stages for _ in range(stage.depth)]
        found = [index for index, has_maps in enumerate(maps) if has_maps]
        return (found[0], found[-1]) if found else (0, 0)

    @cached_property
    def broad_sources(self) -> tuple[int, ...]:
        """Stages that broad attention collects from; empty when it is off."""
        if not self.broad.gamma:
            return ()
        return tuple(index for index, stage in enumerate(self.stages) if stage.facts.taps)

    def to_tree(self) -> dict[str, Any]:
        """A model file's plain tree: what differs from the defaults, groups in brackets."""
        tree = self.model_dump(mode="json", exclude_defaults=True)
        tree = {"name": self.name, "img_size": self.model_dump(mode="json")["img_size"], **tree}
        for stage in tree["stages"]:
            stage.pop("groups", None)
        if any(stage.groups != (1,) for stage in self.stages):
            tree["groups"] = format_schedule(stage.groups for stage in self.stages)
        return tree

    def canonical(self) -> ModelConfig:
        """The one spelling of this network: what cannot matter is at its default, no name."""
        from vitnas.config.checks import canonical

        return canonical(self)

    @cached_property
    def key(self) -> str:
        """Twelve hex digits that two spellings of the same network share.

        Of what differs from the defaults, so that a new field leaves the keys of old runs alone.
        """
        tree = self.canonical().model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def load_config(path: str | Path) -> ModelConfig:
    """Read a model file.

    Raises:
        ConfigError: with file, address, value and rule.
    """
    return validate(ModelConfig, read_yaml(path), file=path)


def save_config(config: ModelConfig, path: str | Path) -> None:
    """Write a model file that `load_config` reads back as an equal configuration."""
    write_text(path, dump_yaml(config.to_tree()))
