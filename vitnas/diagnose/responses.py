"""How strongly each place of an image drives the blocks (SReT, Fig. 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.plotting import INK

_MOST_PANELS = 12


def response(tokens: Tensor) -> Tensor:
    """Root mean square over channels: `(N, C)` -> `(N,)`, at least 0."""
    return tokens.square().mean(-1).sqrt()


class ResponseMaps(Observer):
    """The response of each token of one image after every block.

    Source: SReT, Fig. 10, which shows activations of shallow, middle and deep layers, and those of
    both passes of a block. The paper does not say how channels become one value; here it is
    their root mean square.

    Args:
        layers: all layers. Those whose tokens form no grid are left out.
        image: `(C, H, W)` bytes, for the picture.
    """

    def __init__(self, layers: Sequence[Layer], image: Tensor) -> None:
        self.layers = [layer for layer in layers if layer.grid is not None]
        self.image = image
        self._seen: dict[int, Tensor] = {}

    def see_features(self, layer: Layer, tokens: Tensor) -> None:
        if layer.grid is not None:
            found = response(tokens[0, layer.prefix :]).cpu()
            self._seen[layer.index] = found.reshape(layer.grid)

    def finding(self) -> Finding:
        layers = [layer for layer in self.layers if layer.index in self._seen]
        if not layers:
            return Finding("the tokens form no grid, so there is no picture of them")
        contrast = [self._contrast(layer) for layer in layers]
        numbers: dict[str, Any] = {
            "meaning": "of one image, the root mean square over channels of each token after a "
            "block (SReT, Fig. 10). mean: over tokens. contrast: deviation over tokens as a share "
            "of the mean; 0 = all places alike",
            "layers": [
                {
                    "layer": layer.name,
                    "mean": plain(self._seen[layer.index].mean()),
                    "contrast": round(value, 6),
                    "response": plain(self._seen[layer.index], 4),
                }
                for layer, value in zip(layers, contrast, strict=True)
            ],
        }
        summary = f"contrast between places {min(contrast):.2f} to {max(contrast):.2f} of the mean"
        return Finding(summary, numbers, self._figure(layers))

    def _contrast(self, layer: Layer) -> float:
        seen = self._seen[layer.index]
        mean = seen.mean().clamp_min(torch.finfo(seen.dtype).tiny)
        return float(seen.std(correction=0) / mean)

    def _figure(self, layers: Sequence[Layer]) -> bytes:
        shown = [layers[-1 - place] for place in draw.some_ticks(len(layers), _MOST_PANELS)][::-1]
        rows = -(-(len(shown) + 1) // 7)
        columns = -(-(len(shown) + 1) // rows)
        figure = draw.new_figure(
            "Response maps of one image",
            f"{draw.block_axis(shown)}. Root mean square over channels; each map has a scale of "
            "its own, from its least to its largest value",
            max(6.5, 1.6 * columns + 0.4),
            1.95 * rows + 0.8,
        )
        panels = figure.subplots(rows, columns, squeeze=False)
        for axes in panels.flat:
            axes.axis("off")
        panels.flat[0].imshow(draw.picture(self.image))
        panels.flat[0].set_title("image", loc="left", fontsize=9, color=INK)
        for axes, layer in zip(panels.flat[1:], shown, strict=False):
            axes.imshow(self._seen[layer.index].numpy(), cmap=draw.DEPTH)
            height, width = self._seen[layer.index].shape
            title = f"{layer.label}: {height} x {width}"
            axes.set_title(title, loc="left", fontsize=9, color=INK)
        return draw.png(figure)
