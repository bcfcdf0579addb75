"""Similarity of every block's features to those of the last block (DeepViT, Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.plotting import COLOURS


def token_cosine(features: Tensor, last: Tensor) -> Tensor:
    """Two `(B, N, C)` -> `(B,)`: the cosine of each token's two vectors, averaged over tokens."""
    return torch.nn.functional.cosine_similarity(features, last, dim=-1).mean(-1)


def _settled(layers: Sequence[Layer], values: dict[str, float], above: float = 0.9) -> str:
    """Name of the first layer from which on all layers have values above `above`."""
    name = layers[-1].name
    for layer in reversed(layers[:-1]):
        if values[layer.name] <= above:
            break
        name = layer.name
    return name


class SimilarityToLast(Observer):
    """Mean cosine between every block's output tokens and those of the last block of its stage.

    Source: DeepViT, Fig. 4. Stages differ in the number and width of tokens, so each block is
    compared with the last block of its stage. In a network of one stage this is the paper's
    measure.

    Args:
        layers: all layers; broad attention is left out.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = [layer for layer in layers if layer.mixer != "broad"]
        self._stage: dict[int, Tensor] = {}
        self._sums = {layer.index: 0.0 for layer in self.layers}
        self.images = 0

    def see_features(self, layer: Layer, tokens: Tensor) -> None:
        if layer.index not in self._sums:
            return
        self._stage[layer.index] = tokens
        if layer.last:
            for index, held in self._stage.items():
                self._sums[index] += float(token_cosine(held, tokens).double().sum())
            self._stage.clear()
            self.images += len(tokens) if layer is self.layers[-1] else 0

    def values(self) -> dict[str, float]:
        """Mean cosine of each layer by its name."""
        return {layer.name: self._sums[layer.index] / self.images for layer in self.layers}

    def finding(self) -> Finding:
        values = self.values()
        numbers: dict[str, Any] = {
            "meaning": "cosine between a token's vector after a layer and after the last block of "
            "the stage, averaged over tokens and images (DeepViT, Fig. 4). Stages are not compared "
            "with each other, because their tokens differ in number and width",
            "images": self.images,
            "cosine": {name: plain(torch.tensor(value)) for name, value in values.items()},
        }
        final = [layer for layer in self.layers if layer.stage == self.layers[-1].stage]
        settled = _settled(final, values)
        summary = f"cosine above 0.9 with the last block's from {settled} on"
        if len(final) == 1:
            summary = "one block in the last stage, nothing to compare there"
        elif settled == final[-1].name:
            summary = f"{final[-2].name} has cosine {values[final[-2].name]:.2f} with the last"
        return Finding(summary, numbers, self._figure(values))

    def _figure(self, values: dict[str, float]) -> bytes:
        several = len({layer.stage for layer in self.layers}) > 1
        compared = "of its stage; stages are not compared" if several else "of the network"
        figure = draw.new_figure(
            "Similarity of features to the last block's",
            f"{self.images} images. Compared with the last block {compared}",
            max(6.5, 1.5 + 0.22 * len(self.layers)),
            3.8,
        )
        axes = figure.subplots()
        draw.dress(axes, "", "mean cosine of tokens")
        for number, stage in enumerate(sorted({layer.stage for layer in self.layers})):
            at = [place for place, layer in enumerate(self.layers) if layer.stage == stage]
            y = [values[self.layers[place].name] for place in at]
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(at, y, "o-", color=colour, ms=4, label=f"stage {stage}")
        low = min(0.0, *values.values())
        axes.set_ylim(low - 0.03, 1.03)
        draw.name_layers(axes, self.layers, draw.block_axis(self.layers))
        if several:
            axes.legend(fontsize=8, frameon=False)
        return draw.png(figure)
