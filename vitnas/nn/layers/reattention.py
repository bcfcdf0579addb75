"""Mixing the attention maps of a block across its heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from vitnas.nn.layers.resizing import Change, TokenLayout


class Reattention(nn.Module):
    """A' = scale * Norm(Theta^T A), for the product A' V with the values V.

    A `(B, h, N, N)` are the maps of the h heads, and Theta `(h, h)` mixes the heads.

    Source: DeepViT, Eq. 3. Theta is a 1x1 convolution over the heads, with a bias as in the
    official code. Norm is `batch` (BatchNorm2d over the heads, as in the official code), `layer`
    (LayerNorm over the axis of the heads, as in the code of vit-pytorch) or `none`.

    Theta starts as the identity. So every head starts from its own map, which keeps the diversity
    of the heads (DeepViT, Fig. 3c), and with `none` the block starts as plain MHSA. A random Theta
    would average the heads' maps before anything is learned. All entries of Theta get gradients,
    because the maps of the heads differ.

    Args:
        num_heads: heads h.
        norm: as above.
        bias: whether Theta has a bias.
        scale: 1 in the paper; another constant in the official code.
        eps: epsilon of the `layer` norm; 1e-5 in vit-pytorch. It has an effect, because the values
            over the heads are very similar.

    Shape: map `(B, h, N, N)` -> the same.
    MACs: ``h * h * N * N``, and 2 (batch) or 5 (layer) per entry of the map for the norm.
    """

    def __init__(
        self,
        num_heads: int,
        norm: Literal["batch", "layer", "none"] = "batch",
        bias: bool = True,
        scale: float = 1.0,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.scale = scale
        self.theta = nn.Conv2d(num_heads, num_heads, 1, bias=bias)
        self.over_heads = norm == "layer"
        self.norm = _NORMS[norm](num_heads, eps)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set Theta to the identity."""
        with torch.no_grad():
            nn.init.dirac_(self.theta.weight)
            if self.theta.bias is not None:
                nn.init.zeros_(self.theta.bias)

    def forward(self, attention: Tensor) -> Tensor:
        mixed: Tensor = self._mix(attention)
        if self.over_heads:
            mixed = mixed.permute(0, 2, 3, 1)
        mixed = self.norm(mixed)
        if self.over_heads:
            mixed = mixed.permute(0, 3, 1, 2)
        return mixed if self.scale == 1.0 else self.scale * mixed

    def _mix(self, attention: Tensor) -> Tensor:
        """Theta as a matrix product.

        On the CPU it is up to five times as fast as a 1x1 convolution over few channels, and never
        slower (`benchmarks/mixers.py`).
        """
        maps = attention.flatten(2)  # (B, h, N * N)
        weight = self.theta.weight.flatten(1).expand(maps.shape[0], -1, -1)
        bias = self.theta.bias
        mixed = (
            torch.bmm(weight, maps) if bias is None else torch.baddbmm(bias[:, None], weight, maps)
        )
        return mixed.view_as(attention)

    @torch.no_grad()
    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """Scale by r = M / M', where M is the old number of keys and M' the new one.

        The rows of a map have the sum 1, so its entries and their deviation change by the factor r.
        The mixed map must change by r, too, so that A' V keeps its size. If the rows have another
        sum, their entries do not depend on M, and nothing is to be changed.

        Args:
            old, new: the layouts of the keys.
        """
        ratio, changes = old.tokens / new.tokens, []
        if self.theta.bias is not None:
            changes.append(Change(self.theta, "bias", ratio * self.theta.bias))
        norm = self.norm
        if isinstance(norm, nn.BatchNorm2d):
            mean, variance = norm.running_mean, norm.running_var
            assert mean is not None
            assert variance is not None
            after = ratio**2 * variance
            weight = norm.weight * ((after + norm.eps) / (variance + norm.eps)).sqrt()
            changes.append(Change(norm, "running_mean", ratio * mean))
            changes.append(Change(norm, "running_var", after))
            changes += [Change(norm, "weight", weight), Change(norm, "bias", ratio * norm.bias)]
        elif isinstance(norm, nn.LayerNorm):
            changes += [Change(norm, "weight", ratio * norm.weight)]
            changes += [Change(norm, "bias", ratio * norm.bias)]
        return changes


_NORMS: dict[str, Callable[[int, float], nn.Module]] = {
    "batch": lambda num_heads, eps: nn.BatchNorm2d(num_heads),
    "layer": lambda num_heads, eps: nn.LayerNorm(num_heads, eps),
    "none": lambda num_heads, eps: nn.Identity(),
}
