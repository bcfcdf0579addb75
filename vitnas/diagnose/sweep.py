"""Runs images through a network in batches and shows them to any number of observers."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from vitnas.diagnose.hooks import watching
from vitnas.diagnose.observer import Observer
from vitnas.diagnose.survey import MOST_IMAGES, Survey
from vitnas.training.split import Split


def sweep_maps(found: Survey, images: Split, observers: Sequence[Observer]) -> None:
    """Show the maps of all images to all observers. During this, attention is not fused."""

    def see(index: int, attention: Tensor) -> None:
        for observer in observers:
            observer.see_map(found.layers[index], attention.float())

    with watching(found.network, found.places, see_map=see):
        _run(found, images, found.map_batch, observers)


def sweep_features(found: Survey, images: Split, observers: Sequence[Observer]) -> None:
    """Show the features of all images to all observers."""

    def see(index: int, tokens: Tensor) -> None:
        for observer in observers:
            observer.see_features(found.layers[index], tokens.float())

    with watching(found.network, found.places, see_features=see):
        _run(found, images, MOST_IMAGES, observers)


def _run(found: Survey, images: Split, batch: int, observers: Sequence[Observer]) -> None:
    if not observers:
        return
    device = next(found.network.parameters()).device
    for x, _ in images.batches(batch):
        found.network(images.normalise(x).to(device))
        for observer in observers:
            observer.end_batch()
