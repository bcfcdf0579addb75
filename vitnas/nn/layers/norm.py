"""Norms of tokens: over channels, with or without a bias, or over images and tokens."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import batch_norm

from vitnas.config.parts import Norm

EPS = 1e-6
"""Of a norm, where nothing else is said: timm's and most papers', not PyTorch's 1e-5."""


class TokenBatchNorm(nn.Module):
    """BatchNorm of tokens `(B, N, C)`: the statistics of a channel over images and tokens.

    In front of a linear layer or a 1x1 convolution, as in a block, it can be folded into that.
    A class token counts as a token.

    Passes through one block share weight and bias. Each has running statistics of its own, because
    its tokens have others: with one mean for all passes a network that trains well scores near
    chance (Cooijmans et al., "Recurrent Batch Normalization", section 3).

    Args:
        dim: channels C.
        eps: added to the variance.
        passes: of the block.
    """

    def __init__(self, dim: int, eps: float = EPS, passes: int = 1) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dim, eps)
        self.later = nn.ModuleList(_LaterPass(dim, eps, affine=False) for _ in range(passes - 1))

    def forward(self, x: Tensor, pass_index: int = 0) -> Tensor:
        out: Tensor
        rows = x.flatten(0, 1)  # (B * N, C): no transpose, which the next layer copies
        if pass_index:
            out = self.later[pass_index - 1](rows, self.norm.weight, self.norm.bias)
        else:
            out = self.norm(rows)
        return out.view_as(x)


class _LaterPass(nn.BatchNorm1d):
    """Running statistics of one pass; the weights come from the first one's norm."""

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # type: ignore[override]
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # PyTorch's cumulative mean
                momentum = 1 / float(self.num_batches_tracked)
        mean, var = self.running_mean, self.running_var
        return batch_norm(x, mean, var, weight, bias, self.training, momentum or 0.0, self.eps)


def apply_norm(norm: nn.Module, x: Tensor, pass_index: int) -> Tensor:
    """A norm of a block in one of its passes, counted from 0."""
    out: Tensor = norm(x, pass_index) if isinstance(norm, TokenBatchNorm) else norm(x)
    return out


def build_norm(dim: int, kind: Norm = "layernorm", eps: float = EPS, passes: int = 1) -> nn.Module:
    """The norm of tokens `(B, N, dim)` that `kind` names.

    Args:
        dim: channels C.
        kind: `layernorm_nobias` is MetaFormer's, with a weight and no bias.
        eps: added to the variance.
        passes: how often the norm is used; see `apply_norm`.
    """
    if kind == "batchnorm":
        return TokenBatchNorm(dim, eps, passes)
    return nn.LayerNorm(dim, eps=eps, bias=kind == "layernorm")
