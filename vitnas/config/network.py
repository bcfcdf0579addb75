"""A network as a model file says it: its fields, and what follows from them alone.

Rules across fields are in `checks`; `matters` says when a field matters. `model.ModelConfig` is a
network that keeps all rules.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field

from vitnas.config import rules
from vitnas.config.collected import collected
from vitnas.config.parts import (
    POOLED,
    BroadConfig,
    Downsampling,
    Epsilon,
    Frozen,
    HeadConfig,
    ImageSize,
    Norm,
    Pooling,
    Positive,
    Rate,
    ReattentionConfig,
    Residual,
    StemConfig,
    TemperatureConfig,
    as_tuple,
)
from vitnas.config.stage import StageConfig

_Network = TypeVar("_Network", bound="Network")


@cache
def _halved(height: int, width: int, stride: int, stages: int) -> tuple[tuple[int, int], ...]:
    strides = [stride << index for index in range(stages)]
    return tuple((height // stride, width // stride) for stride in strides)


class Network(Frozen):
    """All fields of a model file."""

    name: str = Field("network", description="a label, not a part of the network")
    img_size: ImageSize = Field(224, description="pixels, or `[height, width]`")
    in_chans: Positive = Field(3, description="channels of an image")
    num_classes: Positive = Field(1000, description="classes")
    stem: StemConfig = Field(StemConfig(), description="from pixels to tokens")
    stages: Annotated[
        tuple[StageConfig, ...], Field(min_length=1, max_length=5), BeforeValidator(as_tuple)
    ] = Field(
        description="each has blocks at one resolution; every stage but the first halves the grid"
    )
    downsample: Downsampling = Field(
        "conv",
        description="the layer between stages, which halves the grid: `conv` 3x3 (SReT), "
        "`metaformer` a norm and 3x3 (CAFormer), `cvt` 3x3 and a norm (CvT), `patch` 2x2, "
        "`separable` a depthwise 3x3, BN, ReLU, 1x1 and BN (MobileNet), `mbconv` MobileNetV3's "
        "inverted residual, which halves the grid between its 1x1 convolutions, `maxpool` 2x2 "
        "max pooling, 1x1 and BN, `vgg` 3x3, BN, ReLU and 2x2 max pooling (VGG), `crelu` the same "
        "with half of the filters and CReLU",
    )
    pooling: Pooling = Field(
        "max",
        description="the pooling of the `conv` stem and of downsampling `maxpool`, `vgg` and "
        "`crelu`: `max` 2x2 max pooling; `max_blur` the same of stride 1, then a fixed low-pass "
        "filter of stride 2, [1, 2, 1] / 4 along both sides (Zhang's MaxBlurPool)",
    )
    downsample_expansion: Annotated[float, Field(ge=1.0, le=8.0)] = Field(
        4.0,
        description="hidden channels of downsampling `mbconv` per channel of the stage before; 1: "
        "without the first convolution",
    )
    downsample_se_ratio: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.0,
        description="channels of squeeze-excitation in downsampling `mbconv` per channel of the "
        "stage before, at least one; 0: without",
    )
    permute: Literal["always", "second", "never"] = Field(
        "always", description="which passes permute the tokens before they are sliced into groups"
    )
    permute_inverse: bool = Field(
        True,
        description="whether attention inverts its permutation; false: its output is added to the "
        "residual in the permuted order (SReT, Table 7, row P)",
    )
    residual: Residual = Field(
        "plain",
        description="`plain`; `lrc`: a learnable number on the branch, one on the skip (SReT, "
        "Eq. 9); `lrc_branch`, `lrc_identity`: on the branch or on the skip alone (SReT, Table "
        "13); `scale`: a learnable number per channel on the skip (CAFormer)",
    )
    branch_scale: Annotated[float, Field(gt=0.0, le=1e3)] = Field(
        1.0,
        description="multiplies every residual branch; DeepViT's code has 2 for -S and -L, its "
        "paper does not mention it",
    )
    norm: Norm = Field(
        "layernorm",
        description="the norm of tokens: in blocks, in stem and downsampling `metaformer`, in stem "
        "`shifted`, in downsampling `cvt`; CAFormer's `layernorm_nobias` has no bias, `batchnorm` "
        "has the statistics of a channel over images and tokens. The last norm is `head.norm`",
    )
    norm_eps: Epsilon = Field(
        1e-6,
        description="epsilon of every norm of tokens before the head; 1e-5 in BViT's code. The "
        "`layer` norm of re-attention has its own",
    )
    mlp_act: Literal["gelu", "star_relu"] = Field(
        "gelu", description="activation of the MLPs; CAFormer has `star_relu`"
    )
    mlp_bias: bool = Field(True, description="whether the MLPs have biases")
    qkv_bias: bool = Field(True, description="whether query, key and value have biases")
    proj_bias: bool = Field(True, description="whether the output projection has a bias")
    pos_embed: Literal["learned", "none", "conditional"] = Field(
        "learned",
        description="`learned`: a table of positions that is added after the stem; `conditional`: "
        "a depthwise 3x3 convolution with a skip before the blocks of each stage (CPVT, Twins)",
    )
    class_token: bool = Field(
        False,
        description="whether there is a class token; between stages a linear layer of its own "
        "takes it to the next width (PiT)",
    )
    distillation_token: bool = Field(
        False,
        description="whether there is a second token beside the class token, with a classifier of "
        "its own, which learns from the teacher of `distill.kind: hard`; outside of training the "
        "scores are the mean of both (DeiT, Section 3)",
    )
    global_pool: Literal["avg", "token", "flatten"] | None = Field(
        None,
        description="how tokens become one vector: `avg` their mean, `token` the class token, "
        "`flatten` all tokens of the grid side by side (LeNet, VGG), which suits small images with "
        "their subject in one place; null: the class token if there is one, else the mean",
    )
    head: HeadConfig = Field(HeadConfig(), description="the last norm and the classifier")
    drop_rate: Rate = Field(0.0, description="dropout before the classifier")
    pos_drop_rate: Rate = Field(0.0, description="dropout after the table of positions")
    proj_drop_rate: Rate = Field(
        0.0, description="dropout after the projections of attention and in the MLPs"
    )
    attn_drop_rate: Rate = Field(0.0, description="dropout on the maps of attention")
    drop_path_rate: Rate = Field(
        0.0,
        description="probability that the last block's branches are dropped; rises linearly from 0 "
        "at the first block",
    )
    temperature: TemperatureConfig = Field(
        TemperatureConfig(), description="softmax temperature of attention"
    )
    reattention_blocks: Annotated[int, Field(ge=0)] = Field(
        0, description="how many of the last `mhsa` blocks have re-attention (DeepViT, Fig. 9)"
    )
    reattention: ReattentionConfig = Field(ReattentionConfig(), description="how maps are mixed")
    broad: BroadConfig = Field(BroadConfig(), description="attention over all layers (BViT)")

    @cached_property
    def image_hw(self) -> tuple[int, int]:
        size = self.img_size
        return (size, size) if isinstance(size, int) else size

    @cached_property
    def grids(self) -> tuple[tuple[int, int], ...]:
        """(H, W) of the tokens in each stage; every stage halves the one before."""
        return _halved(*self.image_hw, self.stem.stride, len(self.stages))

    @property
    def num_prefix_tokens(self) -> int:
        """Tokens before the grid's: the class token, then the distillation token."""
        return self.class_token + self.has_distillation_token

    @property
    def has_distillation_token(self) -> bool:
        return self.class_token and self.distillation_token

    @property
    def pool(self) -> str:
        """How tokens become one vector: `global_pool`, else the class token if there is one."""
        return self.global_pool or ("token" if self.class_token else "avg")

    @property
    def head_width(self) -> int:
        """Channels of the vector that the classifier takes."""
        height, width = self.grids[-1]
        dim = self.stages[-1].embed_dim
        return dim * height * width if self.pool == "flatten" else dim

    def num_tokens(self, stage: int) -> int:
        """Tokens N in a stage, those before the grid included."""
        height, width = self.grids[stage]
        return height * width + self.num_prefix_tokens

    def key_grid(self, stage: int) -> tuple[int, int]:
        """(H, W) of the keys in a stage: the grid, or each s-th token of it along each side."""
        height, width = self.grids[stage]
        stride = self.stages[stage].key_stride
        return -(-height // stride), -(-width // stride)

    def num_keys(self, stage: int) -> int:
        """Keys M in a stage, those of tokens before the grid included."""
        height, width = self.key_grid(stage)
        return height * width + self.num_prefix_tokens

    def tokens_of(self, stage: StageConfig) -> int:
        """Tokens N in a stage of this network: `stages` holds this very object."""
        return self.num_tokens(self._index_of(stage))

    def grid_of(self, stage: StageConfig) -> tuple[int, int]:
        """(H, W) of the tokens in a stage: `stages` holds this very object."""
        return self.grids[self._index_of(stage)]

    def _index_of(self, stage: StageConfig) -> int:
        return next(i for i, other in enumerate(self.stages) if other is stage)

    def downsample_channels(self, index: int) -> tuple[int, int]:
        """Channels inside the layer before stage `index`; those of its squeeze-excitation, or 0.

        Of downsampling `mbconv`; all others are as wide inside as the stage before.
        """
        before = self.stages[index - 1].embed_dim
        if self.downsample != "mbconv":
            return before, 0
        hidden = int(self.downsample_expansion * before)
        return hidden, rules.squeezed_channels(before, self.downsample_se_ratio)

    def residual_of(self, stage: StageConfig) -> Residual:
        return stage.residual or self.residual

    def norm_of(self, stage: StageConfig) -> Norm:
        return stage.norm or self.norm

    @property
    def has_pooling(self) -> bool:
        """Whether the stem or a downsampling layer pools."""
        in_stem = self.stem.kind == "conv" and self.stem.halvings > 0 and self.stem.pools > 0
        return in_stem or (len(self.stages) > 1 and self.downsample in POOLED)

    @property
    def has_norm_between(self) -> bool:
        """Whether the stem or a downsampling layer has a norm of tokens."""
        between = len(self.stages) > 1 and self.downsample in ("metaformer", "cvt")
        return between or self.stem.kind in ("metaformer", "shifted")

    @cached_property
    def reattention_plan(self) -> tuple[int, ...]:
        """How many blocks at the end of each stage have re-attention: the network's last k."""
        left = self.reattention_blocks
        plan = []
        for stage in reversed(self.stages):
            taken = min(left, stage.count("reattention")) if left else 0
            left -= taken
            plan.append(taken)
        return tuple(reversed(plan))

    def has_reattention(self, index: int) -> tuple[bool, ...]:
        """Of each block of a stage, whether it has re-attention."""
        left = self.stages[index].count("reattention") - self.reattention_plan[index]
        flags = []
        for mixes in self.stages[index].having("reattention"):
            left -= mixes
            flags.append(mixes and left < 0)
        return tuple(flags)

    @cached_property
    def map_source(self) -> int | None:
        """Index in the network of the block whose map later ones use; None where none is shared."""
        if not self.reattention_blocks or self.reattention.source == "own":
            return None
        index = next(i for i, taken in enumerate(self.reattention_plan) if taken)
        before = sum(stage.depth for stage in self.stages[:index])
        mixing = [i for i, mixes in enumerate(self.stages[index].having("reattention")) if mixes]
        return before + mixing[-self.reattention_plan[index] - 1]

    @cached_property
    def attention_span(self) -> tuple[int, int]:
        """Index in the network of the first and of the last attention block; (0, 0) without one."""
        maps = [has_maps for stage in self.stages for has_maps in stage.having("maps")]
        found = [index for index, has_maps in enumerate(maps) if has_maps]
        return (found[0], found[-1]) if found else (0, 0)

    @cached_property
    def tapped_layers(self) -> tuple[tuple[int, int], ...]:
        """(stage, block in it) of the layers that broad attention can collect from."""
        found = []
        for index, stage in enumerate(self.stages):
            if stage.taps:
                taps = enumerate(stage.having("taps"))
                found += [(index, block) for block, has_tap in taps if has_tap]
        return tuple(found)

    @cached_property
    def broad_sources(self) -> tuple[tuple[int, int], ...]:
        """Those of `tapped_layers` that broad attention collects from; empty when it is off."""
        if not self.broad.gamma:
            return ()
        layers, flat = self.tapped_layers, len(self.stages) == 1
        found = collected(self.broad.layers, [stage for stage, _ in layers], flat=flat)
        return tuple(layers[index] for index in found)

    def only(self: _Network, index: int, mixer: str) -> _Network:
        """The network as the blocks with `mixer` in stage `index` are to see it.

        That stage has these blocks alone. What follows from the order of all blocks is the whole
        network's.
        """
        stage = self.stages[index]
        if stage.token_mixer == mixer:
            return self
        known = {name: getattr(self, name) for name in ("map_source", "attention_span")}
        mixed = zip(stage.mixers, self.has_reattention(index), strict=True)
        plan, stages = list(self.reattention_plan), list(self.stages)
        plan[index] = sum(has for name, has in mixed if name == mixer)
        stages[index] = stage.only(mixer)
        changed = {"stages": tuple(stages), "reattention_plan": tuple(plan)}
        return self.model_copy(update={**known, **changed})
