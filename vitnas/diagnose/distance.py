"""Mean attention distance of heads (BViT, Fig. 6; first in ViT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.nn.layers.tokens import Grid
from vitnas.plotting import INK


def token_distances(grid: Grid, step: tuple[float, float] = (1.0, 1.0)) -> Tensor:
    """Euclidean distances between all tokens of a grid, `(HW, HW)`.

    Args:
        grid: (H, W).
        step: distance to the next token, down and across: (1, 1) for a result in tokens, a
            token's height and width in pixels for a result in pixels.
    """
    rows = torch.arange(grid[0]).repeat_interleave(grid[1]) * step[0]
    columns = torch.arange(grid[1]).repeat(grid[0]) * step[1]
    places = torch.stack([rows, columns], dim=1).float()
    return torch.cdist(places, places)


def patch_weights(attention: Tensor, prefix: int) -> Tensor:
    """`(B, h, N, N)` -> `(B, h, P, P)`: the map of the P patch tokens; every row has the sum one.

    Prefix tokens have no position and are left out. A re-attention map can have negative entries,
    so absolute values are used.
    """
    patches = attention[..., prefix:, prefix:].abs()
    return patches / patches.sum(-1, keepdim=True).clamp_min(torch.finfo(patches.dtype).tiny)


class AttentionDistance(Observer):
    """sum_m A[n, m] |place(n) - place(m)| of every head, averaged over patch tokens n and images.

    A[n, m] is the attention of patch token n to patch token m.

    Source: BViT, Fig. 6; Dosovitskiy et al., Fig. 7.

    Args:
        layers: layers with a map. Those without a grid are left out.
        image_hw: (H, W) of an image in pixels.
    """

    def __init__(self, layers: Sequence[Layer], image_hw: Grid) -> None:
        self.layers, self.image_hw = [la for la in layers if la.grid is not None], image_hw
        self._sums = {la.index: torch.zeros(2, la.heads).double() for la in self.layers}
        self._distances: dict[Grid, tuple[Tensor, Tensor]] = {}
        self.images = 0

    def see_map(self, layer: Layer, attention: Tensor) -> None:
        if layer.grid is None:
            return
        weights = patch_weights(attention, layer.prefix)
        for row, distances in enumerate(self._distance(layer.grid, attention.device)):
            looked = torch.tensordot(weights, distances, dims=2) / len(distances)  # (B, h)
            self._sums[layer.index][row] += looked.double().sum(0).cpu()
        self.images += len(attention) if layer is self.layers[-1] else 0

    def _distance(self, grid: Grid, device: torch.device) -> tuple[Tensor, Tensor]:
        """Distances between all tokens of a grid, in tokens and in pixels."""
        if grid not in self._distances:
            step = (self.image_hw[0] / grid[0], self.image_hw[1] / grid[1])
            tokens, pixels = token_distances(grid), token_distances(grid, step)
            self._distances[grid] = (tokens.to(device), pixels.to(device))
        return self._distances[grid]

    def finding(self) -> Finding:
        if not self.layers:
            return Finding("the tokens form no grid, so they have no distance")
        means = {layer.index: self._sums[layer.index] / self.images for layer in self.layers}
        numbers: dict[str, Any] = {
            "meaning": "for each head, the mean distance from a patch token to the patch tokens "
            "that it attends to, weighted by attention and averaged over patch tokens and images "
            "(BViT, Fig. 6). Class tokens are left out, and the other weights of a row are scaled "
            "to sum to one. Re-attention maps can be negative; their absolute values are the "
            "weights. uniform_tokens and uniform_pixels: the same for equal attention to all "
            "tokens",
            "images": self.images,
            "image_hw": list(self.image_hw),
            "layers": [self._layer(layer, means[layer.index]) for layer in self.layers],
        }
        ends = [float(mean[1].mean()) for mean in (means[la.index] for la in self.layers)]
        summary = f"{ends[0]:.1f} px in {self.layers[0].name}, {ends[-1]:.1f} px in the last block"
        return Finding(summary, numbers, self._figure(means))

    def _uniform(self, layer: Layer) -> list[float]:
        assert layer.grid is not None
        return [float(d.mean()) for d in self._distance(layer.grid, torch.device("cpu"))]

    def _layer(self, layer: Layer, mean: Tensor) -> dict[str, Any]:
        tokens, pixels = self._uniform(layer)
        return {
            "layer": layer.name,
            "tokens": plain(mean[0]),
            "pixels": plain(mean[1]),
            "uniform_tokens": round(tokens, 6),
            "uniform_pixels": round(pixels, 6),
        }

    def _figure(self, means: dict[int, Tensor]) -> bytes:
        stages = sorted({layer.stage for layer in self.layers})
        figure = draw.new_figure(
            "Mean attention distance of every head",
            f"{self.images} images of {self.image_hw[0]} x {self.image_hw[1]} px. "
            "Dashed: attention to all tokens alike",
            max(7.6, 3.3 * len(stages)),
            4.2,
        )
        panels = figure.subplots(1, len(stages), sharey=True, squeeze=False)[0]
        for axes, stage in zip(panels, stages, strict=True):
            group = [layer for layer in self.layers if layer.stage == stage]
            self._panel(axes, group, means, several=len(stages) > 1)
        panels[0].set_ylabel("mean distance (px)", fontsize=9, color=INK)
        panels[0].set_ylim(0, 1.08 * panels[0].get_ylim()[1])
        return draw.png(figure)

    def _panel(
        self, axes: Any, group: list[Layer], means: dict[int, Tensor], *, several: bool
    ) -> None:
        draw.dress(axes, "head (sorted)", "", draw.stage_title(group[0], several))
        shown = {*draw.some_ticks(len(group), 9), len(group) - 1}
        for index, colour in enumerate(draw.depth_colours(len(group))):
            values = means[group[index].index][1].sort().values.tolist()
            label = group[index].label if index in shown else None
            x = range(1, len(values) + 1)
            axes.plot(x, values, "o-", color=colour, ms=4, lw=1.3, label=label)
        axes.axhline(self._uniform(group[0])[1], color=INK, linewidth=1, linestyle="--")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(fontsize=7, title="layer", title_fontsize=7, frameon=False,
                    loc="upper left", bbox_to_anchor=(1.0, 1.0))  # fmt: skip
