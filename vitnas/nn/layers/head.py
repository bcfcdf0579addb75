"""From tokens to one vector to class scores."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from vitnas.nn.layers.activation import SquaredReLU
from vitnas.nn.layers.norm import build_norm


class MlpClassifier(nn.Sequential):
    """Linear C -> 4C, squared ReLU, LayerNorm, Linear 4C -> classes; biases everywhere.

    Source: MetaFormer baselines, CAFormer's head; timm's `MlpHead`.
    """

    def __init__(self, dim: int, num_classes: int) -> None:
        hidden = 4 * dim
        super().__init__(
            nn.Linear(dim, hidden),
            SquaredReLU(),
            build_norm(hidden),
            nn.Linear(hidden, num_classes),
        )


class Head(nn.Module):
    """`(B, N, C)` -> `(B, num_classes)`.

    `avg`: mean over the patch tokens, then LayerNorm (the order of SReT and CAFormer). `token`:
    the class token, which is first; its LayerNorm over all tokens has already been done. The
    final norm always has a bias, also where the blocks' norms have none (CAFormer in timm).

    Args:
        dim: channels C.
        num_classes: scores to give.
        kind: `linear`, or CAFormer's `mlp`.
        pool: `avg` or `token`.
        num_prefix_tokens: 1 where there is a class token, else 0.
    """

    def __init__(
        self,
        dim: int,
        num_classes: int,
        kind: Literal["linear", "mlp"] = "linear",
        pool: str = "avg",
        num_prefix_tokens: int = 0,
    ) -> None:
        super().__init__()
        self.pool, self.num_prefix_tokens = pool, num_prefix_tokens
        self.norm = build_norm(dim) if pool == "avg" else nn.Identity()
        self.classifier: nn.Module = nn.Linear(dim, num_classes)
        if kind == "mlp":
            self.classifier = MlpClassifier(dim, num_classes)

    def forward(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        pooled = x[:, 0] if self.pool == "token" else x[:, self.num_prefix_tokens :].mean(dim=1)
        vector: Tensor = self.norm(pooled)
        return vector if pre_logits else self.classifier(vector)
