"""How much each token of an image contributes to the output (BViT, Fig. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.nn.layers.tokens import Grid
from vitnas.plotting import INK

RESIDUAL = 0.5
"""Weight of the identity in a block, as in Abnar and Zuidema's paper."""


def mixing(attention: Tensor, residual: float = RESIDUAL) -> Tensor:
    """How a block mixes tokens: maps `(h, N, N)` -> `(N, N)`, whose rows have the sum one.

    residual * I + (1 - residual) * A, where I is the identity and A the mean map of the heads. A
    re-attention map can have negative entries, so absolute values are used.
    """
    mean = attention.abs().mean(0)
    mean = mean / mean.sum(-1, keepdim=True).clamp_min(torch.finfo(mean.dtype).tiny)
    eye = torch.eye(len(mean), dtype=mean.dtype, device=mean.device)
    return residual * eye + (1 - residual) * mean


def merge_rows(rolled: Tensor, before: Grid, after: Grid, prefix: int = 0) -> Tensor:
    """The rows of the next stage's tokens, at the border between two stages.

    The row of a token is the mean of the rows of those tokens that it covers.

    Args:
        rolled: `(N before, M)`; rows are output tokens.
        before, after: grids (H, W) of the two stages.
        prefix: number of first rows that do not change.

    Returns:
        `(N after, M)`; the rows keep their sum.
    """
    if before == after:
        return rolled
    patches = torch.unflatten(rolled[prefix:].T, 1, before)  # (M, H, W)
    merged = torch.nn.functional.adaptive_avg_pool2d(patches, after)
    return torch.cat([rolled[:prefix], merged.flatten(1).T])


class Rollout(Observer):
    """R = A_L ... A_2 A_1 of one image, where A_i = 0.5 I + 0.5 (mean of the heads' maps).

    L is the number of blocks, A_i belongs to block i, and I is the identity.

    Source: Abnar and Zuidema, 2020; BViT, Fig. 7. If the head reads the class token, row 0 of R
    (the class token's) says how much each patch contributes to the output. Otherwise the mean of
    the patches' rows says it.

    Networks of several stages: R starts at the first block that has a map, on the grid of its
    stage. At the border between two stages, the rows of tokens that are merged are averaged, so
    their sum stays one. The overlap of downsampling kernels is ignored. Blocks without a map count
    as the identity. This is right for `identity`, nearly right for convolution and pooling, which
    only mix near tokens, and wrong for `mlp`. Broad attention is left out.

    Args:
        layers: all layers.
        image: `(C, H, W)` bytes, for the picture.
        reads_class: whether the head reads the class token.
    """

    def __init__(self, layers: Sequence[Layer], image: Tensor, *, reads_class: bool) -> None:
        self.layers, self.image, self.reads_class = list(layers), image, reads_class
        self.start: Layer | None = None
        self._at: Layer | None = None
        self._rolled: Tensor | None = None

    def see_map(self, layer: Layer, attention: Tensor) -> None:
        if layer.grid is None:
            return
        if self._rolled is None or self._at is None or self._at.grid is None:
            self.start, self._rolled = layer, mixing(attention[0])
        else:
            rows = merge_rows(self._rolled, self._at.grid, layer.grid, layer.prefix)
            self._rolled = mixing(attention[0]) @ rows
        self._at = layer

    @property
    def weights(self) -> Tensor:
        """How much each token of the first grid contributes: `(H, W)`, sum at most one."""
        assert self._rolled is not None
        assert self.start is not None
        assert self.start.grid is not None
        prefix = self.start.prefix
        by_class = self.reads_class and prefix > 0
        row = self._rolled[0] if by_class else self._rolled[prefix:].mean(0)
        return row[prefix:].reshape(self.start.grid).cpu()

    def finding(self) -> Finding:
        if self.start is None:
            return Finding("the tokens form no grid, so there is no picture of them")
        weights = self.weights
        share = float(weights.sum())
        relative = weights / max(share, torch.finfo(weights.dtype).tiny)
        skipped = [layer.name for layer in self.layers if layer.absent]
        numbers: dict[str, Any] = {
            "meaning": "how much each token of the grid contributes to the output through all "
            "blocks (attention rollout; BViT, Fig. 7). It is the row of the class token, or the "
            "mean of all rows, of the product over blocks of 0.5 I + 0.5 (mean of the heads' "
            "maps), with the identity I. Between two stages the rows of tokens that are merged "
            "are averaged; blocks without a map count as the identity",
            "grid": list(weights.shape),
            "starts_at": self.start.name,
            "read_from": "class token" if self.reads_class and self.start.prefix else "all tokens",
            "residual": RESIDUAL,
            "counted_as_identity": skipped,
            "weights": plain(weights, 9),
        }
        tokens = max(1, round(0.1 * relative.numel()))
        top = float(relative.flatten().sort(descending=True).values[:tokens].sum())
        summary = f"a tenth of the tokens gives {100 * top:.0f} % of the output (10 % = uniform)"
        return Finding(summary, numbers, self._figure(relative))

    def _figure(self, weights: Tensor) -> bytes:
        times = weights * weights.numel()  # 1 = as in uniform attention
        most = max(2.0, float(times.max()))  # 1 is then never at the scale's end
        picture = draw.picture(self.image)
        figure = draw.new_figure(
            "Attention rollout on one image",
            f"{weights.shape[0]} x {weights.shape[1]} tokens, starting at "
            f"{self.start.name if self.start else ''}. 1 = what each token gives if all give alike",
            8.6,
            3.6,
        )
        panels = figure.subplots(1, 3)
        height, width = picture.shape[:2]
        where = {"extent": (0, width, height, 0)}
        panels[0].imshow(picture, **where)
        heat = panels[1].imshow(times.numpy(), cmap=draw.DEPTH, vmin=0.0, vmax=most, **where)
        panels[2].imshow(picture.mean(-1), cmap="gray", vmin=0.0, vmax=1.0, **where)
        panels[2].imshow(_smooth(times, (height, width)), cmap=draw.DEPTH, alpha=0.6, vmin=0.0,
                         vmax=most, **where)  # fmt: skip
        for axes, title in zip(panels, ("image", "rollout", "both, smoothed"), strict=True):
            axes.set_title(title, loc="left", fontsize=10, color=INK)
            axes.set_xlabel("px", fontsize=8, color=INK)
            axes.tick_params(labelsize=7, colors=INK)
        draw.colour_bar(figure, heat, panels, "times the uniform share", 0.8)
        return draw.png(figure)


def _smooth(weights: Tensor, size: Grid) -> npt.NDArray[np.float64]:
    """`(H, W)` of tokens -> pixels, bilinear."""
    larger = torch.nn.functional.interpolate(
        weights[None, None].float(), size, mode="bilinear", align_corners=False
    )
    return np.asarray(larger[0, 0].numpy(), dtype=np.float64)
