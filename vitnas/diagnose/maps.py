"""The attention maps of one image, block by block (DeepViT, Fig. 6; SKA, Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.plotting import INK

_MOST_PANELS = 8
_MOST_SIDE = 256  # of a map in the picture; a larger one is averaged


def spread(attention: Tensor) -> tuple[float, float]:
    """How far a map `(N, N)` spreads: entropy of its rows, and the weight of a token for itself.

    The entropy is a mean over rows as a share of log N: 0 if each token attends to one token, 1 if
    to all alike. Negative entries count by their size.
    """
    size = attention.abs()
    rows = size / size.sum(-1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)
    entropy = -torch.special.xlogy(rows, rows).sum(-1).mean()
    return float(entropy) / log(max(2, len(rows))), float(rows.diagonal().mean())


class AttentionMaps(Observer):
    """The mean map of the heads of each block for one image, and what each token receives.

    Source: DeepViT, Fig. 6; SKA, Fig. 5, the mean over all heads. The map with a static key is that
    of its softmax, too.

    Args:
        layers: layers with a map. At most eight of them are drawn, evenly spaced, with the last.
        image: `(C, H, W)` bytes, for the picture.
    """

    def __init__(self, layers: Sequence[Layer], image: Tensor) -> None:
        self.layers, self.image = list(layers), image
        backwards = draw.some_ticks(len(self.layers), _MOST_PANELS)
        self.drawn = [self.layers[-1 - place] for place in reversed(backwards)]
        self._maps: dict[int, Tensor] = {}
        self._received: dict[int, Tensor] = {}
        self._spread: dict[int, tuple[float, float]] = {}

    def see_map(self, layer: Layer, attention: Tensor) -> None:
        mean = attention[0].mean(0).cpu()
        self._spread[layer.index] = spread(mean)
        self._received[layer.index] = mean.mean(0)
        if layer in self.drawn:
            side = min(len(mean), _MOST_SIDE)
            pooled = torch.nn.functional.adaptive_avg_pool2d(mean[None], side)[0]
            self._maps[layer.index] = pooled

    def finding(self) -> Finding:
        numbers: dict[str, Any] = {
            "meaning": "of one image, the mean map of a block's heads (DeepViT, Fig. 6; SKA, "
            "Fig. 5). entropy: mean entropy of a row, 0 = each token attends to one token, 1 = to "
            "all alike. itself: mean weight of a token for itself. received: mean weight that each "
            "token gets from all tokens, those before the grid first",
            "layers": [
                {
                    "layer": layer.name,
                    "entropy": round(self._spread[layer.index][0], 6),
                    "itself": round(self._spread[layer.index][1], 6),
                    "received": plain(self._received[layer.index]),
                }
                for layer in self.layers
            ],
        }
        found = [entropy for entropy, _ in self._spread.values()]
        low, high = min(found), max(found)
        summary = f"entropy of the rows {low:.2f} to {high:.2f} (1 = all tokens alike)"
        return Finding(summary, numbers, self._figure())

    def _figure(self) -> bytes:
        figure = draw.new_figure(
            "Attention maps of one image, mean over heads",
            "Top: rows attend to columns. Bottom: what each place of the image receives. "
            "Each map has a scale of its own; dark = 0",
            1.9 * (len(self.drawn) + 1) + 0.4,
            4.4,
        )
        panels = figure.subplots(2, len(self.drawn) + 1, squeeze=False)
        for axes in panels.flat:
            axes.set_xticks([])
            axes.set_yticks([])
        panels[1, 0].axis("off")
        panels[0, 0].imshow(draw.picture(self.image))
        panels[0, 0].set_title("image", loc="left", fontsize=10, color=INK)
        for layer, (top, bottom) in zip(self.drawn, panels[:, 1:].T, strict=True):
            whole = self._maps[layer.index]
            top.imshow(whole.numpy(), cmap=draw.DEPTH, vmin=0.0, vmax=_bright(whole))
            top.set_title(layer.label, loc="left", fontsize=10, color=INK)
            if layer.grid is None:
                bottom.axis("off")
                continue
            received = self._received[layer.index][layer.prefix :].reshape(layer.grid)
            bottom.imshow(received.numpy(), cmap=draw.DEPTH, vmin=0.0, vmax=_bright(received))
        panels[0, 1].set_ylabel(f"{draw.block_axis(self.drawn)}\nmap", fontsize=9, color=INK)
        panels[1, 1].set_ylabel("received", fontsize=9, color=INK)
        return draw.png(figure)


def _bright(values: Tensor) -> float:
    """The end of a scale that a few large entries do not decide; above 0."""
    return max(float(values.flatten().quantile(0.995)), 1e-9)
