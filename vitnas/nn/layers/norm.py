"""Norms of tokens: over channels, with or without a bias, or over images and tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import batch_norm

from vitnas.config.parts import Norm

torch.fx.wrap("narrow_batch_norm")  # a layout is unknown while torch.fx traces: a leaf

EPS = 1e-6
"""Of a norm, where nothing else is said: timm's and most papers', not PyTorch's 1e-5."""
_WIDTH = 8  # floats in a vector instruction
_PIXELS = 8192  # of a batch: with fewer, more calls cost more than a faster kernel saves


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
        momentum = _next_momentum(self) if self.training else 0.0
        mean, var = self.running_mean, self.running_var
        return batch_norm(x, mean, var, weight, bias, self.training, momentum, self.eps)


class NarrowBatchNorm(nn.BatchNorm2d):
    """BatchNorm of a picture with fewer than eight channels.

    PyTorch's kernel for channels that lie side by side takes a row of channels at a time, which is
    slow where a row is shorter than a vector instruction. It is used all the same for a batch of
    few pixels, as it is one call.
    """

    def forward(self, x: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        assert mean is not None
        assert var is not None
        if not self.training:
            return batch_norm(x, mean, var, self.weight, self.bias, eps=self.eps)
        momentum = _next_momentum(self)
        return narrow_batch_norm(x, self.weight, self.bias, mean, var, momentum, self.eps)


def picture_norm(channels: int) -> nn.BatchNorm2d:
    """BatchNorm of a picture `(B, channels, H, W)`."""
    return (NarrowBatchNorm if channels < _WIDTH else nn.BatchNorm2d)(channels)


def narrow_batch_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Tensor:
    """As `torch.nn.functional.batch_norm` in training; `(B, C, H, W)` -> the same."""
    count = x.numel() // x.shape[1]
    suits = x.dtype == torch.float32 and x.is_contiguous(memory_format=torch.channels_last)
    if x.device.type != "cpu" or not suits or count < _PIXELS:
        return batch_norm(x, running_mean, running_var, weight, bias, True, momentum, eps)
    out, mean, var = _WideRows.apply(x, weight, bias, eps)
    running_mean.lerp_(mean, momentum)
    running_var.lerp_(var * (count / max(1, count - 1)), momentum)
    normed: Tensor = out
    return normed


class _WideRows(torch.autograd.Function):
    """BatchNorm over rows of several pixels, which are long enough for vector instructions.

    Gives the normed picture, and mean and variance `(C,)` without gradients.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        channels, count = x.shape[1], x.numel() // x.shape[1]
        pixels = next(number for number in (16, 8, 4, 2, 1) if count % number == 0)
        rows = x.permute(0, 2, 3, 1).reshape(-1, pixels * channels)
        mean = _sum(rows, channels) / count
        centred = rows - mean.repeat(pixels)
        var = _sum(centred * centred, channels) / count
        inverse = (var + eps).rsqrt()
        scale = weight * inverse
        out = torch.addcmul(bias.repeat(pixels), centred, scale.repeat(pixels))
        ctx.save_for_backward(centred, scale, inverse)
        ctx.mark_non_differentiable(mean, var)
        return _picture(out, x.shape), mean, var

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        centred, scale, inverse = ctx.saved_tensors
        channels, pixels = len(scale), centred.shape[1] // len(scale)
        count = centred.numel() // channels
        rows = gradient.permute(0, 2, 3, 1).reshape(centred.shape)
        of_bias = _sum(rows, channels)
        of_weight = _sum(rows * centred, channels) * inverse
        slope = -of_weight * inverse / count
        moved = rows - (of_bias / count).repeat(pixels)
        inner = torch.addcmul(moved, centred, slope.repeat(pixels))
        of_x = _picture(inner.mul_(scale.repeat(pixels)), gradient.shape)
        return of_x, of_weight, of_bias, None


def _sum(rows: Tensor, channels: int) -> Tensor:
    """Of each channel over pixels, `(C,)`."""
    return rows.sum(0).view(-1, channels).sum(0)


def _picture(rows: Tensor, shape: torch.Size) -> Tensor:
    """Rows of pixels -> `(B, C, H, W)`, channels side by side."""
    batch, channels, height, width = shape
    return rows.view(batch, height, width, channels).permute(0, 3, 1, 2)


def _next_momentum(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> float:
    """Count a batch; the share that it has in the running statistics."""
    momentum = norm.momentum
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
        if momentum is None:  # PyTorch's cumulative mean
            momentum = 1 / float(norm.num_batches_tracked)
    return momentum or 0.0


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
