"""The head: tokens to one vector, and this to class scores."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from vitnas.nn.layers.activation import SquaredReLU
from vitnas.nn.layers.norm import EPS, build_norm
from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens


class MlpClassifier(nn.Sequential):
    """Linear C -> 4C, squared ReLU, LayerNorm, Linear 4C -> classes; biases everywhere.

    Source: MetaFormer baselines, CAFormer's head; timm's `MlpHead`.
    """

    def __init__(self, dim: int, num_classes: int, norm_eps: float = EPS) -> None:
        hidden = 4 * dim
        super().__init__(
            nn.Linear(dim, hidden),
            SquaredReLU(),
            build_norm(hidden, eps=norm_eps),
            nn.Linear(hidden, num_classes),
        )


class Head(nn.Module):
    """`(B, N, C)`, or a grid of tokens `(B, H, W, C)`, -> `(B, num_classes)`.

    Pooling `avg` is the mean over the patch tokens, then a LayerNorm (the order of SReT and
    CAFormer), or no norm (MobileNet). `flatten` puts all patch tokens side by side, so that the
    classifier knows where each feature is (LeNet, VGG); its LayerNorm is that of each token and
    comes before the head. `token` takes the first token, the class token; its LayerNorm
    comes before the head. With a distillation token, the second token has a classifier of its own,
    and the scores are the mean of both (DeiT, Section 3). The final norm always has a bias, even if
    the norms of blocks have none (CAFormer in timm). Dropout comes just before the classifier.
    After timm's `reset_classifier` there may be no pooling (``""``); then the head gives scores or
    features of every token.

    Args:
        dim: channels C.
        num_classes: number of scores.
        kind: `linear`, or CAFormer's `mlp`.
        pool: `avg`, `token` or `flatten`.
        num_patches: patch tokens of an image, H W; counts for `flatten`.
        num_prefix_tokens: 1 where there is a class token, 2 with a distillation token, else 0.
        norm: `layernorm`, or `none` for no final norm.
        norm_eps, mlp_norm_eps: epsilons of the final norm and of the one inside `mlp`.
        drop: probability of the dropout.

    Attributes:
        distilled_training: whether in training mode both scores are given, and not their mean.

    Randomness: initial weights; dropout in training.
    """

    distilled_training = False

    def __init__(
        self,
        dim: int,
        num_classes: int,
        kind: Literal["linear", "mlp"] = "linear",
        pool: str = "avg",
        num_patches: int = 1,
        num_prefix_tokens: int = 0,
        norm: Literal["layernorm", "none"] = "layernorm",
        norm_eps: float = EPS,
        mlp_norm_eps: float = EPS,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.dim, self.kind, self.mlp_norm_eps = dim, kind, mlp_norm_eps
        self.global_pool, self.num_prefix_tokens = pool, num_prefix_tokens
        self.num_patches = num_patches
        self.norm: nn.Module = nn.Identity()
        if pool == "avg" and norm == "layernorm":
            self.norm = build_norm(dim, eps=norm_eps)
        self.drop = nn.Dropout(drop)
        self.classifier = self.new_classifier(num_classes)
        self.distillation_classifier: nn.Module | None = None
        if num_prefix_tokens > 1:
            self.distillation_classifier = self.new_classifier(num_classes)

    @property
    def width(self) -> int:
        """Channels of the vector that the classifier takes."""
        return self.dim * self.num_patches if self.global_pool == "flatten" else self.dim

    def new_classifier(self, num_classes: int) -> nn.Module:
        """A classifier of this head's kind with PyTorch's initial weights; 0 = the identity."""
        if not num_classes:
            return nn.Identity()
        if self.kind == "mlp":
            return MlpClassifier(self.width, num_classes, self.mlp_norm_eps)
        return nn.Linear(self.width, num_classes)

    def forward(self, x: Tensor, pre_logits: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Scores; both those of the class and of the distillation token in `distilled_training`."""
        vector: Tensor = self.drop(self.norm(self.pool(x)))
        if self.distillation_classifier is None or self.global_pool != "token":
            return vector if pre_logits else self.classifier(vector)
        second: Tensor = self.drop(x[:, 1])
        if pre_logits:
            return (vector + second) / 2
        scores = self.classifier(vector), self.distillation_classifier(second)
        return scores if self.distilled_training and self.training else (scores[0] + scores[1]) / 2

    def pool(self, x: Tensor) -> Tensor:
        """Tokens to one vector `(B, width)`; without pooling they do not change."""
        if self.global_pool == "token":
            return x[:, 0]
        if self.global_pool in ("avg", "flatten"):
            patches = x.flatten(1, -2)[:, self.num_prefix_tokens :]
            return patches.mean(dim=1) if self.global_pool == "avg" else patches.flatten(1)
        return x

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """What another image size changes: where places have weights, these are interpolated."""
        changes = [Change(self, "num_patches", new.tokens - new.prefix)]
        if self.global_pool == "flatten" and isinstance(self.classifier, nn.Linear):
            patches = [layout._replace(prefix=0) for layout in (old, new)]
            weight = self.classifier.weight.unflatten(1, (patches[0].tokens, self.dim))
            fitted = resize_tokens(weight, 1, patches[0], patches[1]).flatten(1)
            fitted *= patches[0].tokens / patches[1].tokens
            changes += [
                Change(self.classifier, "weight", fitted),
                Change(self.classifier, "in_features", fitted.shape[1]),
            ]
        return changes
