"""The attention maps of single images, block by block (DeepViT, Fig. 6; SKA, Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.plotting import INK

MOST_IMAGES = 8
"""Most images whose maps are drawn."""
_MOST_PANELS = 8
_GAP = 0.08  # below the rows of an image, as a share of a row
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


@dataclass(frozen=True)
class _Seen:
    """What is kept of a layer's map of one image.

    Attributes:
        entropy, itself: of `spread`.
        received: `(N,)`, the mean weight that each token gets.
        drawn: the map itself, at most 256 tokens a side; None where it is not drawn.
    """

    entropy: float
    itself: float
    received: Tensor
    drawn: Tensor | None

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        numbers = {"entropy": round(self.entropy, 6), "itself": round(self.itself, 6)}
        return {**numbers, "received": plain(self.received)}


class AttentionMaps(Observer):
    """The mean map of the heads of each block for each image, and what each token receives.

    Source: DeepViT, Fig. 6; SKA, Fig. 5, the mean over all heads. The map with a static key is that
    of its softmax, too.

    Args:
        layers: layers with a map. At most eight of them are drawn, evenly spaced, with the last.
        images: `(n, C, H, W)` bytes, for the picture; the maps of the first n images are read.
        first: the number of the first of them.
    """

    def __init__(self, layers: Sequence[Layer], images: Tensor, first: int = 0) -> None:
        self.layers, self.images = list(layers), images
        self.numbers = list(range(first, first + len(images)))
        backwards = draw.some_ticks(len(self.layers), _MOST_PANELS)
        self.drawn = [self.layers[-1 - place] for place in reversed(backwards)]
        self._seen: dict[int, list[_Seen]] = {layer.index: [] for layer in self.layers}

    def see_map(self, layer: Layer, attention: Tensor) -> None:
        seen = self._seen[layer.index]
        for one in attention[: len(self.images) - len(seen)]:
            seen.append(self._read(layer, one.mean(0).cpu()))

    def _read(self, layer: Layer, mean: Tensor) -> _Seen:
        whole = None
        if layer in self.drawn:
            side = min(len(mean), _MOST_SIDE)
            whole = torch.nn.functional.adaptive_avg_pool2d(mean[None], side)[0]
        return _Seen(*spread(mean), mean.mean(0), whole)

    def finding(self) -> Finding:
        numbers: dict[str, Any] = {
            "meaning": "of these images, the mean map of a block's heads (DeepViT, Fig. 6; SKA, "
            "Fig. 5). entropy: mean entropy of a row, 0 = each token attends to one token, 1 = to "
            "all alike. itself: mean weight of a token for itself. received: mean weight that each "
            "token gets from all tokens, those before the grid first. Of several images they are "
            "means, and of_each has them of each",
            "images": self.numbers,
            "layers": [self._facts(layer) for layer in self.layers],
        }
        found = [one.entropy for seen in self._seen.values() for one in seen]
        low, high = min(found), max(found)
        summary = f"entropy of the rows {low:.2f} to {high:.2f} (1 = all tokens alike)"
        summary += f" in {len(self.numbers)} images" if len(self.numbers) > 1 else ""
        return Finding(summary, numbers, self._figure())

    def _facts(self, layer: Layer) -> dict[str, Any]:
        seen = self._seen[layer.index]
        mean = _Seen(
            sum(one.entropy for one in seen) / len(seen),
            sum(one.itself for one in seen) / len(seen),
            torch.stack([one.received for one in seen]).mean(0),
            None,
        )
        facts = {"layer": layer.name, **mean.facts()}
        if len(seen) > 1:
            facts["of_each"] = [one.facts() for one in seen]
        return facts

    def _figure(self) -> bytes:
        count, columns = len(self.images), len(self.drawn) + 1
        several = count > 1
        side = 1.35 if several else 1.9  # inches
        figure = draw.new_figure(
            f"Attention maps of {f'{count} images' if several else 'one image'}, mean over heads",
            f"Columns: {draw.block_axis(self.drawn)}. Top: rows attend to columns. Bottom: what "
            "each place of the image receives. Each map has a scale of its own; dark = 0",
            side * columns + 0.4,
            2 * side * count + 0.6,
        )
        ratios = ([1.0, 1.0, _GAP] * count)[:-1]  # a gap between the rows of two images
        panels = figure.subplots(
            len(ratios), columns, squeeze=False, gridspec_kw={"height_ratios": ratios}
        )
        for axes in panels.flat:
            axes.set_xticks([])
            axes.set_yticks([])
        for axes in panels[2::3].flat:
            axes.axis("off")
        for place in range(count):
            self._draw_image(place, panels[3 * place], panels[3 * place + 1])
        return draw.png(figure)

    def _draw_image(self, place: int, top: Any, bottom: Any) -> None:
        """Draw one image and its maps into two rows of panels."""
        name = f"image {self.numbers[place]}" if len(self.images) > 1 else "image"
        bottom[0].axis("off")
        top[0].imshow(draw.picture(self.images[place]))
        top[0].set_title(name, loc="left", fontsize=10, color=INK)
        for layer, above, below in zip(self.drawn, top[1:], bottom[1:], strict=True):
            seen = self._seen[layer.index][place]
            assert seen.drawn is not None
            above.imshow(seen.drawn.numpy(), cmap=draw.DEPTH, vmin=0.0, vmax=_bright(seen.drawn))
            above.set_title(layer.label, loc="left", fontsize=10, color=INK)
            if layer.grid is None:
                below.axis("off")
                continue
            received = seen.received[layer.prefix :].reshape(layer.grid)
            below.imshow(received.numpy(), cmap=draw.DEPTH, vmin=0.0, vmax=_bright(received))
        top[1].set_ylabel("map", fontsize=9, color=INK)
        bottom[1].set_ylabel("received", fontsize=9, color=INK)


def _bright(values: Tensor) -> float:
    """The end of a scale that a few large entries do not decide; above 0."""
    return max(float(values.flatten().quantile(0.995)), 1e-9)
