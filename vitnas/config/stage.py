"""A stage as a model file says it: its fields, and what follows from them alone."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from vitnas.config import rules
from vitnas.config.findings import RuleError
from vitnas.config.mixers import (
    Given,
    MixerFacts,
    checked_options,
    facts_of,
    mixer_named,
    unpacked,
)
from vitnas.config.notation import parse_schedule
from vitnas.config.parts import (
    Frozen,
    Kernel,
    MapActivation,
    Norm,
    Positive,
    Ratio,
    Residual,
    as_tuple,
)
from vitnas.config.pattern import TokenMixer


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


Groups = Annotated[
    tuple[Positive, ...], Field(min_length=1, max_length=100), BeforeValidator(_as_groups)
]


class StageConfig(Frozen):
    """Blocks at one resolution."""

    token_mixer: TokenMixer = Field(
        description="what mixes the tokens: a name of vitnas's, one that an installed package "
        "announces, or the path `package.module:Class` of another package's. `{pattern: [dwconv, "
        "mhsa]}`: the blocks take turns; `{pattern: [dwconv], last: ska, blocks: 2}`: the last two "
        "have `ska`. `skip`: no block, so the stage is its downsampling alone. Other fields are of "
        "the blocks that use them: without groups are those that cannot be sliced"
    )
    mixer_options: dict[str, Any] = Field(
        Given(), description="the own fields of another package's mixer"
    )
    depth: Positive = Field(
        1, description="blocks with weights of their own; of `skip` any number means the same"
    )
    embed_dim: Positive = Field(description="channels C")
    num_heads: Positive | None = Field(
        None, description="heads of attention; null: `attn_dim` / `head_dim`"
    )
    head_dim: Positive | None = Field(
        None, description="channels of a head, instead of `num_heads`; null: 32"
    )
    attn_dim: Positive | None = Field(
        None,
        description="channels of query, key and value, all heads together, as `attn_dim: 640` and "
        "`head_dim: 64` for 10 heads of 64 (vit-pytorch's `heads` and `dim_head`); null: "
        "`embed_dim`",
    )
    passes: Annotated[int, Field(ge=1, le=100)] = Field(
        None,  # type: ignore[assignment]  # `_has_a_number_for_each_pass` fills it in
        exclude=True,
        description="passes through each block (SReT, Section 4.2): `groups` is cut or repeated to "
        "so many numbers; left out: as many as `groups` has. `mbconv` is passed once",
    )
    groups: Groups = Field(
        (1,),
        description="token groups g of each pass through a block, as `[8, 2]`; one number a pass",
    )
    loop: Literal["internal", "external"] = Field(
        "internal",
        description="`internal`: all passes through a block before the next block; `external`: all "
        "blocks of the stage, then all of them again, with a non-linear layer after each round "
        "alone (SReT, Section 5.2)",
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
        description="hidden channels of `dwconv` and `mbconv` per channel; null: 2 for `dwconv` "
        "(CAFormer), 4 for `mbconv`; with 1, `mbconv` has no first convolution (MobileNetV2)",
    )
    kernel_size: Kernel | None = Field(
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
    attn_act: MapActivation = Field(
        "softmax",
        description="from logits to the map of attention: `softmax`, or in its place a function of "
        "each logit alone (SKA, Table 4), so that the rows of the map have no fixed sum",
    )
    mask_diagonal: bool = Field(
        False,
        description="whether no token attends to itself (LSA, as in SKA's ViT at 32 px)",
    )
    key_init: Literal["trunc_normal", "randn"] = Field(
        "trunc_normal",
        description="initial static key; `randn` (the code of the SKA paper) saturates the softmax",
    )
    key_kernel: Kernel = Field(
        3, description="odd side of the kernel of `cska`'s convolution, its key (SKA, Section 7)"
    )
    windows: Positive = Field(
        1,
        description="the grid is cut into this number of windows along each side; tokens attend "
        "inside their window, and each window has a static key of its own (SKA's Swin at 32 px)",
    )
    kernel_qkv: Kernel | None = Field(
        None,
        description="odd side of a depthwise convolution with BatchNorm before each projection to "
        "query, key and value; tokens before the grid skip it (CvT, Section 3.2); null: without",
    )
    stride_kv: Annotated[int, Field(ge=1, le=64)] = Field(
        1,
        description="stride of the convolutions before key and value: 2 leaves a quarter of the "
        "keys (CvT). A static key is as long as the values. Broad attention collects nothing here",
    )
    q_proj: bool = Field(
        True,
        description="whether the query is a projection of the tokens; false: the tokens (SKA)",
    )

    @model_validator(mode="before")
    @classmethod
    def _unpack_mixer(cls, tree: Any) -> Any:
        return unpacked(tree)

    @field_validator("mixer_options")
    @classmethod
    def _mixer_has_options(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        mixer = info.data.get("token_mixer")
        if mixer is None:
            return given
        names = (mixer,) if isinstance(mixer, str) else mixer.names
        readers = [name for name in names if mixer_named(name).facts.options]
        return checked_options((readers or names)[0], given)

    @property
    def mixers(self) -> tuple[str, ...]:
        """The token mixer of each block."""
        if isinstance(self.token_mixer, str):
            return (self.token_mixer,) * self.depth
        return self.token_mixer.of_blocks(self.depth)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The token mixers of its blocks, each once."""
        mixer = self.token_mixer
        return (mixer,) if isinstance(mixer, str) else tuple(dict.fromkeys(mixer.names))

    @property
    def facts(self) -> MixerFacts:
        """What has to be known of the token mixers; see `facts_of`."""
        mixer = self.token_mixer
        return mixer_named(mixer).facts if isinstance(mixer, str) else facts_of(mixer.names)

    def count(self, fact: str) -> int:
        """How many blocks have a mixer of which `fact` is true."""
        if not getattr(self.facts, fact):
            return 0
        return sum(self.having(fact))

    def having(self, fact: str) -> tuple[bool, ...]:
        """Of each block, whether `fact` is true of its mixer."""
        return tuple(bool(getattr(mixer_named(name).facts, fact)) for name in self.mixers)

    def only(self, mixer: str) -> StageConfig:
        """The stage as its blocks with `mixer` are: a stage of these alone."""
        if self.token_mixer == mixer:
            return self
        facts, given = mixer_named(mixer).facts, self.__dict__
        own: dict[str, Any] = {"token_mixer": mixer, "depth": self.mixers.count(mixer)}
        if facts.groups == "refused":
            own["groups"] = (1,) * self.passes
        if not facts.options:
            own["mixer_options"] = Given()
        fields = {name: given[name] for name in StageConfig.model_fields}
        return StageConfig.model_construct(**{**fields, **own})

    @cached_property
    def heads(self) -> int:
        """Number of heads; 0 for a mixer without."""
        if not self.facts.heads:
            return 0
        return rules.heads_of(self.attn_width, self.num_heads, self.head_dim)

    @property
    def attn_width(self) -> int:
        """Channels of query, key and value, all heads together."""
        reads = self.attn_dim is not None and "attn_dim" in self.facts.fields
        return self.attn_dim if reads and self.attn_dim else self.embed_dim

    @property
    def projects_query(self) -> bool:
        """Whether the query of a static-key mixer is a projection of the tokens."""
        return self.q_proj or self.attn_width != self.embed_dim

    @property
    def num_windows(self) -> int:
        """Windows of the whole grid, in which the tokens of a static-key mixer attend."""
        return self.windows**2 if "windows" in self.facts.fields else 1

    @property
    def qkv_kernel(self) -> int:
        """Side of the convolutions before the projections to query, key and value; 0 without."""
        return self.kernel_qkv or 0 if "kernel_qkv" in self.facts.fields else 0

    @property
    def key_stride(self) -> int:
        """Tokens of the grid per key, along each side."""
        return self.stride_kv if self.qkv_kernel else 1

    @property
    def taps(self) -> bool:
        """Whether it has blocks from which broad attention can collect."""
        return self.facts.taps and self.key_stride == 1

    @property
    def has_nll(self) -> bool:
        return self.nll_ratio > 0 and len(self.groups) > 1

    @property
    def is_external(self) -> bool:
        """Whether the stage is passed as a whole."""
        return self.loop == "external" and len(self.groups) > 1

    @property
    def num_nlls(self) -> int:
        """How many non-linear layers the stage has."""
        places = 1 if self.is_external else self.depth
        return places * len(self.groups) if self.has_nll else 0

    @property
    def has_blocks(self) -> bool:
        """Whether a block does something; else the stage is what stands before its blocks."""
        return not self.facts.skips

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
        return rules.squeezed_channels(self.embed_dim, self.se_ratio)

    @cached_property
    def kernel(self) -> int:
        return self.kernel_size or self.facts.kernel_size

    @property
    def hidden_tokens(self) -> int:
        return self.tokens_dim or rules.default_tokens_dim(self.embed_dim)

    @model_validator(mode="after")
    def _has_a_number_for_each_pass(self) -> StageConfig:
        groups = rules.schedule_of(self.groups, self.passes)
        self.__dict__.update(groups=groups, passes=len(groups))
        return self

    @model_validator(mode="after")
    def _pattern_fits(self) -> StageConfig:
        mixer = self.token_mixer
        problem = None if isinstance(mixer, str) else mixer.problem(self.depth)
        if problem:
            rule, field, value, nearest = problem
            raise RuleError(rule, f"token_mixer.{field}", value, nearest)
        return self

    @model_validator(mode="after")
    def _widths_fit(self) -> StageConfig:
        dim = self.embed_dim
        if self.facts.heads:
            wide = self.attn_dim if "attn_dim" in self.facts.fields else None
            problem = rules.heads_problem(dim, self.num_heads, self.head_dim, wide)
            if problem:
                raise RuleError(*problem)
        for name in ("mlp_ratio", "nll_ratio", "expansion"):
            ratio = self.__dict__[name]
            if ratio and ratio * dim < 1:
                rule = f"leaves no hidden channel at embed_dim {dim}"
                raise RuleError(rule, name, ratio, 1.0)
        return self
