"""The whole network: stem, stages, broad attention, head; with timm's interface."""

# No `from __future__ import annotations`: torch.fx copies those of `forward` into its graph.

import math

import torch
from torch import Tensor, nn

from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.memory import check_memory
from vitnas.nn.broad import BroadAttention
from vitnas.nn.features import as_feature, feature_levels
from vitnas.nn.interface import TimmInterface, taken_levels
from vitnas.nn.layers.head import Head
from vitnas.nn.layers.images import InputSizeError, check_images
from vitnas.nn.layers.init import init_linear, truncated_normal_
from vitnas.nn.layers.norm import build_norm
from vitnas.nn.layers.stem import Stem
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers import Tap
from vitnas.nn.stage import Stage

__all__ = ["HybridTransformer", "InputSizeError", "build_model", "drop_path_rates"]

_BLOCK_BYTES = 40_000
"""Least size of a block's Python objects in bytes; measured: 48,000 without attention."""

torch.fx.wrap("check_images")  # sizes cannot be compared while torch.fx traces: a leaf


class HybridTransformer(TimmInterface):
    """Images `(B, in_chans, H, W)` -> class scores `(B, num_classes)`.

    Everything between stem and head works on tokens `(B, N, C)`. A network is for one image size:
    position table, static keys and token MLPs belong to positions, and group numbers to a number of
    tokens. `resize` changes the size.

    The methods are those of timm's models, and mean the same; docs/timm.md has examples.

    Args:
        config: the network; already checked, so nothing is checked here.

    Attributes:
        config: as given, with the changes of `resize` and `reset_classifier`. It does not have
            what no model file can say (no classifier, pruned layers).
        num_classes: 0 once the classifier is removed.
        global_pool: `avg`, `token`, `flatten`, or `""` once pooling is removed.
        num_features, head_hidden_size: channels of the features, and before the classifier.
        feature_info: timm's description of the levels that `forward_intermediates` gives.
        output_fmt: of `forward_features`: `NLC`, or `NHWC` in a network of several stages without
            class token.

    Randomness: initial weights, dropout, drop-path and permutations in training; none in eval.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.image_hw, self.in_chans = config.image_hw, config.in_chans
        self.num_classes, self.global_pool = config.num_classes, config.pool
        self.num_features = config.stages[-1].embed_dim
        self.num_prefix_tokens = config.num_prefix_tokens
        self.feature_info = feature_levels(config)
        self.num_levels, self.flat = len(self.feature_info), len(config.stages) == 1
        self.output_fmt = "NLC" if self.flat or config.class_token else "NHWC"
        dim = config.stages[0].embed_dim
        self.stem = Stem(config)
        self.class_token: nn.Parameter | None = None
        if config.class_token:
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.distillation_token: nn.Parameter | None = None
        if config.has_distillation_token:
            self.distillation_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed: nn.Parameter | None = None
        if config.pos_embed == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, config.num_tokens(0), dim))
        self.pos_drop = nn.Dropout(config.pos_drop_rate)
        rates = drop_path_rates(config)
        self.stages = nn.ModuleList(Stage(config, i, part) for i, part in enumerate(rates))
        self.broad = BroadAttention.of(config) if config.broad.gamma else None
        self.collects = self.broad is not None or config.map_source is not None
        over_tokens = config.pool != "avg"  # else the head norms the one pooled vector
        self.norm: nn.Module = nn.Identity()
        if over_tokens and config.head.norm == "layernorm":
            self.norm = build_norm(self.num_features, eps=config.head.norm_eps)
        self.head = Head(
            self.num_features,
            config.num_classes,
            config.head.kind,
            config.pool,
            math.prod(config.grids[-1]),
            config.num_prefix_tokens,
            norm=config.head.norm,
            norm_eps=config.head.norm_eps,
            mlp_norm_eps=config.head.mlp_norm_eps,
            drop=config.drop_rate,
        )
        self.init_weights()

    def init_weights(self) -> None:
        """Linear weights, position table and tokens: truncated normal 0.02; biases zero."""
        self.apply(init_linear)
        for table in (self.class_token, self.distillation_token, self.pos_embed):
            if table is not None:
                truncated_normal_(table)

    def embed(self, images: Tensor) -> Tensor:
        """Images -> tokens `(B, N, C)` of the first stage, class token and positions included."""
        check_images(images, self.in_chans, self.image_hw[0], self.image_hw[1])
        x = self.stem(images)
        for token in (self.distillation_token, self.class_token):
            if token is not None:
                x = torch.cat([token.expand(x.shape[0], -1, -1), x], dim=1)
        if self.pos_embed is not None:
            x = x + self.pos_embed
        tokens: Tensor = self.pos_drop(x)
        return tokens

    def forward_features(self, images: Tensor) -> Tensor:
        """Images -> the last stage's tokens before pooling.

        `(B, N, C)` in a network of one stage or with a class token, as in timm's ViT; else
        `(B, H, W, C)`, as in timm's Swin.
        """
        x, grid = self.embed(images), self.image_hw
        taps: list[Tap] | None = [] if self.collects else None
        for stage in self.stages:
            x, grid = stage(x, taps), stage.grid
        return self._finish(x, taps, grid)

    def forward_intermediates(
        self,
        x: Tensor,
        indices: int | list[int] | None = None,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: str = "NCHW",
        intermediates_only: bool = False,
    ) -> list[Tensor] | tuple[Tensor, list[Tensor]]:
        """The features of several levels (`feature_info`), with timm's arguments.

        A network of one stage has a level per block, with `NLC` features `(B, H*W, C)` or `NCHW`
        ones without class token; one of several stages has a level per stage.

        Args:
            x: images.
            indices: levels to give: the last n, those in a list (negative ones from the end), or
                all with None.
            return_prefix_tokens: give pairs of feature and class token `(B, 1, C)`, in a network
                that has one; with a distillation token `(B, 2, C)`.
            norm: whether the last norm is applied: to each level of one stage, else to the last
                stage alone. A network whose norm comes after pooling applies none.
            stop_early: leave out the levels after the last wanted one; broad attention belongs to
                the last level.
            output_fmt: `NCHW` or `NLC`.
            intermediates_only: give the list alone.

        Returns:
            `(final, features)`, where `final` is what `forward_features` gives.
        """
        if output_fmt not in ("NCHW", "NLC"):
            raise ValueError(f"output_fmt = {output_fmt}: must be NCHW or NLC")
        take, last = taken_levels(self.num_levels, indices)
        whole = not stop_early or last == self.num_levels - 1
        taken: list[Tensor] = []
        taps: list[Tap] | None = [] if self.collects else None
        x, grid = self.embed(x), self.image_hw
        for index, stage in enumerate(self.stages):
            if self.flat:
                x, grid = stage(x, taps, take, taken, last if stop_early else -1), stage.grid
            elif whole or index <= last:
                x, grid = stage(x, taps), stage.grid
                if index in take:
                    taken.append(x)
        if norm and self.flat:
            taken = [self.norm(y) for y in taken]
        elif norm and self.num_levels - 1 in take:
            taken[-1] = self.norm(taken[-1])
        prefix = self.num_prefix_tokens
        class_tokens = [y[:, :prefix] for y in taken]
        grids = [grid if self.flat else self.stages[level].grid for level in sorted({*take})]
        pairs = zip(taken, grids, strict=True)
        taken = [as_feature(y[:, prefix:], grid, output_fmt) for y, grid in pairs]
        if return_prefix_tokens and prefix > 0:
            taken = list(zip(taken, class_tokens, strict=True))  # type: ignore[arg-type]
        if intermediates_only:
            return taken
        return self._finish(x, taps if whole else None, grid), taken

    def _finish(self, x: Tensor, taps: list[Tap] | None, grid: Grid) -> Tensor:
        """What follows the last stage: broad attention where there is any, norm, grid."""
        if self.broad is not None and taps is not None:
            x = self.broad(x, taps)
        features: Tensor = self.norm(x)
        return features if self.output_fmt == "NLC" else torch.unflatten(features, 1, grid)

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """Features -> class scores, or with `pre_logits` the `(B, num_features)` before them."""
        scores: Tensor = self.head(features, pre_logits)
        return scores

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(images))


def drop_path_rates(config: ModelConfig) -> list[list[float]]:
    """Drop-path probability of every block, stage by stage: from 0 linearly to the last block's."""
    total = sum(stage.depth for stage in config.stages)
    step = config.drop_path_rate / max(1, total - 1)
    rates = iter([index * step for index in range(total)])
    return [[next(rates) for _ in range(stage.depth)] for stage in config.stages]


def build_model(config: ModelConfig) -> HybridTransformer:
    """The network that `config` describes, with fresh weights, on the default device.

    Raises:
        MemoryLimitError: it takes more memory than this machine has free.
    """
    params = f"{closed_form(config).num_params:,}"
    what = f"the network's {params} parameters and its features of one image"
    check_memory(least_memory(config), what, "take a smaller network")
    return HybridTransformer(config)


def least_memory(config: ModelConfig) -> int:
    """Least number of bytes of the network: its modules, its weights and one image's features.

    The features are the image and the largest tokens or maps, in float32.
    """
    height, width = config.image_hw
    numbers = closed_form(config).num_params + config.in_chans * height * width
    numbers += max(_largest_features(config, index) for index in range(len(config.stages)))
    return 4 * numbers + _BLOCK_BYTES * sum(stage.depth for stage in config.stages)


def _largest_features(config: ModelConfig, index: int) -> int:
    stage, tokens = config.stages[index], config.num_tokens(index)
    unfused = stage.attn_act != "softmax" or stage.mask_diagonal
    has_maps = config.reattention_plan[index] or unfused
    maps = tokens * config.num_keys(index) // stage.num_windows * stage.heads if has_maps else 0
    return max(tokens * stage.embed_dim, maps)
