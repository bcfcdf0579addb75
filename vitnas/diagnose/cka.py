"""Centred kernel alignment between the features of all layers (BViT, Eq. 9)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import torch
from torch import Tensor

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer, plain

MOST_BYTES = 1 << 29
"""Most memory for the features of all layers in one estimate: 512 MiB."""
FEWEST = 8
"""Least number of images in one estimate, even if they need more memory than that."""


def linear_gram(features: Tensor) -> Tensor:
    """The Gram matrix K = X X^T of n images with p features each: `(n, p)` -> `(n, n)` float64.

    X is centred first. This changes no centred form of K and loses fewer digits.
    """
    centred = features - features.mean(dim=0, keepdim=True)
    return (centred @ centred.T).double()


def centre(gram: Tensor) -> Tensor:
    """H K H with H = I - 1/n: `(n, n)`, whose rows and columns have the mean zero."""
    return gram - gram.mean(0, keepdim=True) - gram.mean(1, keepdim=True) + gram.mean()


def u_centre(gram: Tensor) -> Tensor:
    """U(K), the U-centred K: `(n, n)`, n > 2. Its diagonal, row sums and column sums are zero.

    For two Gram matrices K and L, <U(K), U(L)> / (n (n - 3)) is HSIC_1 (Song et al., 2012), here in
    Szekely and Rizzo's form. It is unbiased for every number n > 3 of images.
    """
    n = len(gram)
    hollow = gram - torch.diag(torch.diagonal(gram))
    rows = hollow.sum(1)
    centred = hollow - (rows[:, None] + rows[None, :]) / (n - 2)
    centred = centred + rows.sum() / ((n - 1) * (n - 2))
    return centred - torch.diag(torch.diagonal(centred))


def hsic_matrix(grams: Sequence[Tensor], *, unbiased: bool) -> Tensor:
    """HSIC between all pairs of L Gram matrices `(n, n)` -> `(L, L)`.

    For a pair K, K' the biased form is tr(K H K' H) / (n - 1)^2, as in BViT's Eq. 9, with H = I -
    1/n. The unbiased form is HSIC_1 (see `u_centre`).
    """
    n = len(grams[0])
    flat = torch.stack([(u_centre if unbiased else centre)(gram).flatten() for gram in grams])
    return flat @ flat.T / (n * (n - 3) if unbiased else (n - 1) ** 2)


def normalised(hsic: Tensor) -> Tensor:
    """CKA from a matrix of HSIC: HSIC(K, K') / sqrt(HSIC(K, K) HSIC(K', K')).

    NaN for a layer without variance.
    """
    scale = torch.diagonal(hsic).clamp_min(0).sqrt()
    return hsic / (scale[:, None] * scale[None, :])


class LayerCka(Observer):
    """CKA between all layers. A layer's features are all its tokens and channels, flattened.

    Source: BViT, Eq. 9 (Kornblith et al., 2019). If the features of all images do not fit into
    memory, the images are divided into groups. HSIC_1 is averaged over the groups and then
    normalised (Nguyen et al., 2021). Unlike the biased form, it does not depend on the size of the
    groups.

    Args:
        layers: all layers. Layers of different stages can be compared.
        images: number of images that will be shown.
        most_bytes: most memory for features.
    """

    def __init__(self, layers: Sequence[Layer], images: int, most_bytes: int = MOST_BYTES) -> None:
        self.layers = list(layers)
        each = sum(4 * layer.tokens * layer.dim for layer in layers)
        self.groups = ceil(images / max(FEWEST, most_bytes // each))
        self.group_size = ceil(images / self.groups)
        self._held: dict[int, list[Tensor]] = {layer.index: [] for layer in layers}
        self._hsic = torch.zeros(len(layers), len(layers)).double()
        self._used, self._estimates = 0, 0

    @property
    def unbiased(self) -> bool:
        """Whether the minibatch estimator is used."""
        return self.groups > 1

    def see_features(self, layer: Layer, tokens: Tensor) -> None:
        self._held[layer.index].append(tokens.flatten(1))

    def end_batch(self) -> None:
        while sum(map(len, self._held[self.layers[0].index])) >= self.group_size:
            self._estimate(self.group_size)

    def _estimate(self, number: int) -> None:
        """Use the first `number` images that are held."""
        grams = []
        for layer in self.layers:
            held = torch.cat(self._held[layer.index])
            self._held[layer.index] = [held[number:].clone()]
            grams.append(linear_gram(held[:number]))
        self._hsic += hsic_matrix(grams, unbiased=self.unbiased).cpu()
        self._used, self._estimates = self._used + number, self._estimates + 1

    def matrix(self) -> Tensor:
        """CKA of all pairs `(L, L)`; NaN if a layer's features are the same for all images."""
        left = sum(map(len, self._held[self.layers[0].index]))
        if left > 3 or (left and not self._estimates):  # HSIC_1 needs four
            self._estimate(left)
        return normalised(self._hsic / max(1, self._estimates))

    def finding(self) -> Finding:
        found = self.matrix()
        numbers: dict[str, Any] = {
            "meaning": "linear centred kernel alignment between the outputs of every two layers, "
            "all tokens and channels flattened (BViT, Eq. 9). 1 = equal up to rotation and "
            "scale. estimator full: Eq. 9 over all images; minibatch: the unbiased HSIC_1, "
            "averaged over groups of images and then normalised",
            "estimator": "minibatch" if self.unbiased else "full",
            "images": self._used,
            "images_per_group": self.group_size,
            "layers": [layer.name for layer in self.layers],
            "cka": plain(found),
        }
        off = ~torch.eye(len(found), dtype=torch.bool)
        mean = float(found[off].nanmean()) if off.any() else 1.0
        ends = float(found[0, -1])
        summary = f"mean {mean:.2f} over pairs of layers; first with last {ends:.2f}"
        return Finding(summary, numbers, self._figure(found))

    def _figure(self, found: Tensor) -> bytes:
        groups = f"HSIC_1 over groups of {self.group_size}" if self.unbiased else "all at once"
        figure = draw.new_figure(
            "Similarity of features between layers (linear CKA)",
            f"{self._used} images, {groups}. White: no variance",
            6.6,
            5.6,
        )
        axes = figure.subplots()
        labels = [layer.label for layer in self.layers]
        image = draw.heat_map(axes, found, labels, "", draw.block_axis(self.layers), 32)
        draw.colour_bar(figure, image, axes, "CKA")
        return draw.png(figure)
