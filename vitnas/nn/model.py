"""The whole network: stem, stages, broad attention, head."""

from __future__ import annotations

import torch
from timm.layers import trunc_normal_
from torch import Tensor, nn

from vitnas.config.model import ModelConfig
from vitnas.errors import VitnasError
from vitnas.nn.broad import BroadAttention
from vitnas.nn.layers.head import Head
from vitnas.nn.layers.init import STD, init_linear
from vitnas.nn.layers.norm import build_norm
from vitnas.nn.layers.residual import LearnableResidual
from vitnas.nn.layers.stem import Stem
from vitnas.nn.mixers import Tap
from vitnas.nn.stage import Stage


class InputSizeError(VitnasError, ValueError):
    """Images of another size, or with other channels, than the network was built for."""


class HybridTransformer(nn.Module):
    """Images `(B, in_chans, H, W)` -> class scores `(B, num_classes)`.

    Everything between stem and head works on tokens `(B, N, C)`. Bound to one image size: position
    table, static keys and token MLPs belong to positions, and group numbers to a number of tokens.

    Args:
        config: the network; already checked, so nothing is checked here.

    Attributes:
        config, num_classes, num_features: as given; `num_features` is the width before the head.

    Randomness: initial weights, drop-path and permutations in training; none in eval.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.num_classes = config.num_classes
        self.num_features = config.stages[-1].embed_dim
        dim = config.stages[0].embed_dim
        self.stem = Stem(config)
        self.class_token: nn.Parameter | None = None
        if config.class_token:
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed: nn.Parameter | None = None
        if config.pos_embed == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, config.num_tokens(0), dim))
        rates = drop_path_rates(config)
        self.stages = nn.ModuleList(Stage(config, i, part) for i, part in enumerate(rates))
        self.broad = BroadAttention.of(config) if config.broad.gamma else None
        self.collects = self.broad is not None or config.map_source is not None
        over_tokens = config.pool == "token"  # else the head norms the one pooled vector
        self.norm: nn.Module = nn.Identity()
        if over_tokens:
            self.norm = build_norm(self.num_features, eps=config.head.norm_eps)
        self.head = Head(
            self.num_features,
            config.num_classes,
            config.head.kind,
            config.pool,
            config.num_prefix_tokens,
            norm_eps=config.head.norm_eps,
            mlp_norm_eps=config.head.mlp_norm_eps,
        )
        self.init_weights()

    def init_weights(self) -> None:
        """Linear weights, position table and class token: truncated normal 0.02; biases zero."""
        self.apply(init_linear)
        for table in (self.class_token, self.pos_embed):
            if table is not None:
                trunc_normal_(table, std=STD)

    def no_weight_decay(self) -> set[str]:
        """Names of parameters that weight decay must leave alone, beside the 1-D ones.

        Static keys are not among them: they stand where the key projection's weight stood, and
        decay like it.
        """
        names = {"pos_embed", "class_token"}
        for prefix, module in self.named_modules():
            if isinstance(module, LearnableResidual):
                names |= {f"{prefix}.branch", f"{prefix}.identity"}
        return names

    def forward_features(self, images: Tensor) -> Tensor:
        """Images -> tokens `(B, N, C)` of the last stage, before pooling."""
        self._check_size(images)
        x = self.stem(images)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        if self.pos_embed is not None:
            x = x + self.pos_embed
        taps: list[Tap] | None = [] if self.collects else None
        for stage in self.stages:
            x = stage(x, taps)
        if self.broad is not None and taps is not None:
            x = self.broad(x, taps)
        features: Tensor = self.norm(x)
        return features

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """Tokens -> class scores, or with `pre_logits` the `(B, num_features)` before them."""
        scores: Tensor = self.head(features, pre_logits)
        return scores

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(images))

    def _check_size(self, images: Tensor) -> None:
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            # sizes are tensors in a trace, and comparing them would warn
            return
        height, width = self.config.image_hw
        channels, found_height, found_width = images.shape[-3:]
        if (found_height, found_width) != (height, width):
            raise InputSizeError(
                f"this network is built for images of {height}x{width} and was given "
                f"{found_height}x{found_width}: build it with img_size "
                f"[{found_height}, {found_width}], or resize the images"
            )
        if channels != self.config.in_chans:
            raise InputSizeError(
                f"this network is built for images with {self.config.in_chans} channels (in_chans) "
                f"and was given {channels}"
            )


def drop_path_rates(config: ModelConfig) -> list[list[float]]:
    """Drop-path probability of every block, stage by stage: from 0 linearly to the last block's."""
    total = sum(stage.depth for stage in config.stages)
    step = config.drop_path_rate / max(1, total - 1)
    rates = iter([index * step for index in range(total)])
    return [[next(rates) for _ in range(stage.depth)] for stage in config.stages]


def build_model(config: ModelConfig) -> HybridTransformer:
    """The network that `config` describes, with fresh weights, on the default device."""
    return HybridTransformer(config)
