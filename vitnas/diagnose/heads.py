"""Similarity of the heads of one block (DeepViT, Fig. 3c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.diagnose.similarity import TAU, spread_columns, unit_columns
from vitnas.diagnose.survey import comparable
from vitnas.plotting import COLOURS, INK


def cross_head(units: Tensor) -> Tensor:
    """Result of `unit_columns` `(B, h, T, N)` -> cosines of every two heads `(B, T, h, h)`."""
    by_token = units.transpose(1, 2)  # (B, T, h, N)
    return by_token @ by_token.transpose(-2, -1)


def over_pairs(matrix: Tensor) -> Tensor:
    """`(h, h)` -> the values of its h (h - 1) / 2 pairs of different heads."""
    first, second = torch.triu_indices(len(matrix), len(matrix), offset=1)
    return matrix[first, second]


class HeadSimilarity(Observer):
    """Share of similar vectors (Eq. 7) between every two heads of a block.

    Source: DeepViT, Fig. 3c. A low share means diverse heads. In the paper it is low in each
    block, and re-attention uses this.

    Args:
        layers: layers with a map. Blocks with one head get no value.
        tau: threshold of similar vectors.
    """

    def __init__(self, layers: Sequence[Layer], tau: float = TAU) -> None:
        self.tau, self.layers = tau, list(layers)
        self._columns = {
            layer.index: spread_columns(group) for group in comparable(layers) for layer in group
        }
        zeros = {layer.index: torch.zeros(layer.heads, layer.heads).double() for layer in layers}
        self._above = zeros
        self._cosine = {index: torch.zeros_like(matrix) for index, matrix in zeros.items()}
        self.images = 0

    def see_map(self, layer: Layer, attention: Tensor) -> None:
        found = cross_head(unit_columns(attention, self._columns[layer.index]))
        self._above[layer.index] += (found > self.tau).double().mean(1).sum(0).cpu()
        self._cosine[layer.index] += found.double().mean(1).sum(0).cpu()
        self.images += len(attention) if layer is self.layers[-1] else 0

    def finding(self) -> Finding:
        ratios = {layer.index: self._above[layer.index] / self.images for layer in self.layers}
        several = [layer for layer in self.layers if layer.heads > 1]
        means = {layer.index: float(over_pairs(ratios[layer.index]).mean()) for layer in several}
        numbers: dict[str, Any] = {
            "meaning": "ratio[a][b]: share of input tokens whose columns in the maps of heads a "
            "and b have a cosine above tau (DeepViT, Fig. 3c with Eq. 7). mean_cosine[a][b]: the "
            "mean of these cosines. mean_ratio and mean_pair_cosine: the means over pairs of "
            "different heads, null for a block with one head",
            "tau": self.tau,
            "images": self.images,
            "layers": [self._layer(layer, ratios[layer.index]) for layer in self.layers],
        }
        if not several:
            return Finding("every block has one head: no pairs", numbers)
        low, high = min(means.values()), max(means.values())
        summary = f"{100 * low:.0f} to {100 * high:.0f} % similar vectors between a block's heads"
        return Finding(summary, numbers, self._figure(several, ratios, means))

    def _layer(self, layer: Layer, ratio: Tensor) -> dict[str, Any]:
        cosine = self._cosine[layer.index] / self.images
        mean = [plain(over_pairs(m).mean()) if layer.heads > 1 else None for m in (ratio, cosine)]
        return {
            "layer": layer.name,
            "heads": layer.heads,
            "mean_ratio": mean[0],
            "mean_pair_cosine": mean[1],
            "ratio": plain(ratio),
            "mean_cosine": plain(cosine),
        }

    def _figure(
        self, layers: list[Layer], ratios: dict[int, Tensor], means: dict[int, float]
    ) -> bytes:
        figure = draw.new_figure(
            f"Similarity of the heads of each block (cosine above {self.tau:g})",
            f"{self.images} images. Points: pairs of heads; line: their mean. Low = diverse heads",
            max(6.5, 1.5 + 0.22 * len(layers)),
            3.8,
        )
        axes = figure.subplots()
        draw.dress(axes, "", "share of similar vectors")
        for at, layer in enumerate(layers):
            values = over_pairs(ratios[layer.index]).tolist()
            axes.scatter([at] * len(values), values, s=12, color=COLOURS[0], alpha=0.35, lw=0)
        axes.plot([means[layer.index] for layer in layers], "o-", color=INK, ms=4)
        axes.set_ylim(-0.03, 1.03)
        draw.name_layers(axes, layers, draw.block_axis(layers))
        return draw.png(figure)
