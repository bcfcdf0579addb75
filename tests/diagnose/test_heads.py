"""Similarity of heads."""

from __future__ import annotations

import torch

from tests.diagnose.networks import layer, random_maps
from vitnas.diagnose.heads import HeadSimilarity, cross_head, over_pairs
from vitnas.diagnose.similarity import unit_columns


def test_heads_with_one_map_are_similar_and_disjoint_ones_are_not() -> None:
    same = random_maps(2, 1).expand(2, 3, 6, 6)
    apart = torch.zeros(2, 3, 6, 6)
    for head in range(3):
        apart[:, head, 2 * head : 2 * head + 2] = 1 / 6
    layers = [layer(0, heads=3), layer(1, heads=3)]
    observer = HeadSimilarity(layers)
    for one, attention in zip(layers, (same, apart), strict=True):
        observer.see_map(one, attention)
    found = observer.finding().numbers
    assert found["images"] == 2
    assert [one["mean_ratio"] for one in found["layers"]] == [1.0, 0.0]
    assert found["layers"][1]["ratio"] == [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]


def test_the_measure_is_that_of_layers_with_heads_in_their_place() -> None:
    units = unit_columns(random_maps(1, 2))
    by_hand = (units[0, 0] * units[0, 1]).sum(-1)
    torch.testing.assert_close(cross_head(units)[0, :, 0, 1], by_hand)


def test_one_head_has_no_pair() -> None:
    observer = HeadSimilarity([layer(heads=1)])
    observer.see_map(observer.layers[0], random_maps(2, 1))
    found = observer.finding()
    assert found.figure is None
    assert found.numbers["layers"][0]["mean_ratio"] is None
    assert "no pairs" in found.summary


def test_pairs_are_counted_once() -> None:
    assert over_pairs(torch.arange(9).reshape(3, 3)).tolist() == [1, 2, 5]
