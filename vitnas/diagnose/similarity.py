"""Similarity of the attention maps of different blocks (DeepViT, Eq. 2 and 7)."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain
from vitnas.diagnose.survey import MOST_HELD, comparable, map_size
from vitnas.plotting import COLOURS, INK

TAU = 0.5
"""DeepViT's threshold of similar vectors (its appendix D)."""
NEAREST = 4
"""Over how many blocks to each side similarity is averaged; our choice."""
SIMILAR_BLOCK = 0.8
"""DeepViT's threshold of similar blocks (its appendix D)."""


def unit_columns(attention: Tensor, columns: Tensor | None = None) -> Tensor:
    """Columns of maps as unit vectors: `(B, h, N, N)` -> `(B, h, T, N)`.

    A column holds the weights of one input token for all N output tokens. A column of zeros stays
    zero.

    Args:
        attention: the map. Row n has the weights of output token n.
        columns: `(T,)` positions of input tokens; None = all.
    """
    chosen = attention if columns is None else attention[..., columns]
    return torch.nn.functional.normalize(chosen.transpose(-2, -1).contiguous(), dim=-1)


def cross_layer(units: Sequence[Tensor]) -> Tensor:
    """M of DeepViT's Eq. 2: L results of `unit_columns` `(B, h, T, N)` -> `(B, h, T, L, L)`.

    M[.., h, t, p, q] is the cosine between the columns of token t of head h in layers p and q.
    """
    by_token = torch.stack(list(units), dim=-2)  # (B, h, T, L, N)
    return by_token @ by_token.transpose(-2, -1)


def similar_blocks(neighbours: Sequence[float], threshold: float = SIMILAR_BLOCK) -> list[bool]:
    """For each of L blocks, whether it is similar to the block before or after it.

    Source: DeepViT, appendix D. It says "the adjacent block"; here either neighbour counts.

    Args:
        neighbours: the L - 1 similarities S(p, p + 1) of adjacent layers (see
            `CrossLayerSimilarity`).
        threshold: a block is similar if one of its values is above this.
    """
    above = [value > threshold for value in neighbours]
    return [before or after for before, after in zip([False, *above], [*above, False], strict=True)]


def nearest_blocks(ratio: Tensor, nearest: int = NEAREST) -> list[float]:
    """For each of L layers the mean S with the layers at most `nearest` away, itself left out.

    Source: DeepViT, Fig. 3a, which is over the "nearest k transformer blocks" and prints no k.

    Args:
        ratio: S of every two layers, `(L, L)`, L at least 2.
        nearest: k. At the ends of a stage there are fewer such layers.
    """
    place = torch.arange(len(ratio))
    away = (place[:, None] - place).abs()
    near = ((away > 0) & (away <= nearest)).to(ratio.dtype)
    means: list[float] = ((ratio * near).sum(1) / near.sum(1)).tolist()
    return means


def spread_columns(layers: Sequence[Layer]) -> Tensor | None:
    """Positions of evenly spread input tokens to compare; None if all tokens fit into memory."""
    numbers, tokens = sum(map(map_size, layers)), layers[0].tokens
    if numbers <= MOST_HELD:
        return None
    kept = max(16, MOST_HELD * tokens // numbers)
    return torch.linspace(0, tokens - 1, min(kept, tokens)).round().long()


class CrossLayerSimilarity(Observer):
    """Similarity of the maps of layers p and q over all images.

    S(p, q) is the share of (head, token) pairs whose cosine M[p, q] (see `cross_layer`) is above
    tau. The mean of M is reported, too.

    Source: DeepViT, Eq. 2 (columns of the map, the same head in both layers) and Eq. 7. Maps of
    different stages have different sizes, so maps are compared only within a stage.

    Args:
        layers: layers with a map.
        tau: threshold of similar vectors, -1 to 1.
    """

    def __init__(self, layers: Sequence[Layer], tau: float = TAU) -> None:
        self.tau, self.groups = tau, comparable(layers)
        self.columns = [spread_columns(group) for group in self.groups]
        self._home = {layer.index: g for g, group in enumerate(self.groups) for layer in group}
        self._held: dict[int, Tensor] = {}
        self._above = [torch.zeros(len(group), len(group)).double() for group in self.groups]
        self._cosine = [torch.zeros_like(zeros) for zeros in self._above]
        self.images = 0

    def see_map(self, layer: Layer, attention: Tensor) -> None:
        self._held[layer.index] = unit_columns(attention, self.columns[self._home[layer.index]])

    def end_batch(self) -> None:
        batch = 0
        for number, group in enumerate(self.groups):
            found = cross_layer([self._held.pop(layer.index) for layer in group])
            batch = len(found)
            self._above[number] += (found > self.tau).double().mean((1, 2)).sum(0).cpu()
            self._cosine[number] += found.double().mean((1, 2)).sum(0).cpu()
        self.images += batch

    def finding(self) -> Finding:
        ratios = [above / self.images for above in self._above]
        cosines = [cosine / self.images for cosine in self._cosine]
        similar = [similar_blocks(torch.diagonal(ratio, 1).tolist()) for ratio in ratios]
        count, total = sum(map(sum, similar)), sum(map(len, self.groups))
        numbers: dict[str, Any] = {
            "meaning": "ratio[p][q]: share of (head, input token) pairs whose columns in the maps "
            "of layers p and q have a cosine above tau (DeepViT, Eq. 2 and 7). mean_cosine[p][q]: "
            f"the mean of these cosines. nearest: of each layer the mean ratio with those at most "
            f"{NEAREST} before or after it (DeepViT, Fig. 3a; its k is not printed). "
            "A block is similar if its ratio with the layer before or "
            f"after is above {SIMILAR_BLOCK}. Maps are compared only within a stage, because those "
            "of different stages have different sizes.",
            "tau": self.tau,
            "images": self.images,
            "similar_blocks": count,
            "blocks": total,
            "ratio_of_similar_blocks": round(count / total, 6),
            "stages": [
                self._stage(number, ratios[number], cosines[number], similar[number])
                for number in range(len(self.groups))
            ],
        }
        summary = f"{count} of {total} maps similar to a neighbour's ({100 * count / total:.0f} %)"
        return Finding(summary, numbers, self._figure(ratios))

    def _stage(self, number: int, ratio: Tensor, cosine: Tensor, similar: list[bool]) -> Any:
        group, columns = self.groups[number], self.columns[number]
        return {
            "stage": group[0].stage,
            "layers": [layer.name for layer in group],
            "input_tokens_compared": group[0].tokens if columns is None else len(columns),
            "input_tokens": group[0].tokens,
            "nearest": [round(one, 6) for one in nearest_blocks(ratio)] if len(ratio) > 1 else [],
            "ratio": plain(ratio),
            "mean_cosine": plain(cosine),
            "similar": similar,
        }

    def _figure(self, ratios: Sequence[Tensor]) -> bytes:
        several = len(self.groups) > 1
        width = max(6.5, 3.6 * len(self.groups) + 1.2)
        note = f"{self.images} images; maps are compared within a stage" if several else ""
        note = note or f"{self.images} images"
        figure = draw.new_figure(
            f"Similarity of attention maps across blocks (cosine above {self.tau:g})",
            f"{note}. Dashed: DeepViT's threshold of similar blocks, {100 * SIMILAR_BLOCK:.0f} %",
            width,
            6.6,
        )
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.7, 1])
        panels = top.subplots(1, len(self.groups), squeeze=False)[0]
        for axes, group, ratio in zip(panels, self.groups, ratios, strict=True):
            labels = [layer.label for layer in group]
            title = draw.stage_title(group[0], several)
            image = draw.heat_map(axes, ratio, labels, title, draw.block_axis(group))
        draw.colour_bar(top, image, panels, "share of similar vectors")
        self._draw_neighbours(bottom.subplots(), ratios)
        return draw.png(figure)

    def _draw_neighbours(self, axes: Any, ratios: Sequence[Tensor]) -> None:
        layers = [layer for group in self.groups for layer in group]
        draw.dress(axes, "", "share of similar vectors", "with other blocks of its stage")
        before: list[float] = []
        nearest: list[float] = []
        for ratio in ratios:  # nan: no line from one stage to the next
            before += [nan, *torch.diagonal(ratio, 1).tolist(), nan]
            nearest += [*(nearest_blocks(ratio) if len(ratio) > 1 else [nan]), nan]
        place = 0
        at: list[float] = []
        for group in self.groups:
            at += [*range(place, place + len(group)), nan]
            place += len(group)
        axes.plot(at, before, "o-", color=COLOURS[0], ms=4, label="the one before")
        label = f"mean of the nearest {NEAREST} to each side"
        axes.plot(at, nearest, "s:", color=COLOURS[1], ms=3, label=label)
        axes.legend(fontsize=8, framealpha=0.6)
        axes.axhline(SIMILAR_BLOCK, color=INK, linewidth=1, linestyle="--")
        axes.set_ylim(-0.03, 1.03)
        draw.name_layers(axes, layers, draw.block_axis(layers))
