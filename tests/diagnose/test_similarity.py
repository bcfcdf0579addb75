"""Similarity of maps across blocks: known answers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.diagnose.networks import layer, random_maps
from vitnas.diagnose import similarity as module
from vitnas.diagnose.observer import Finding
from vitnas.diagnose.similarity import (
    CrossLayerSimilarity,
    cross_layer,
    nearest_blocks,
    similar_blocks,
    spread_columns,
    unit_columns,
)


def seen(*maps: Tensor, tau: float = 0.5, batches: int = 1) -> Finding:
    observer = CrossLayerSimilarity([layer(index) for index in range(len(maps))], tau)
    for part in zip(*(torch.tensor_split(m, batches) for m in maps), strict=True):
        for index, attention in enumerate(part):
            observer.see_map(layer(index), attention)
        observer.end_batch()
    return observer.finding()


def test_identical_maps_are_similar_throughout() -> None:
    found = seen(*[random_maps()] * 3).numbers
    assert found["ratio_of_similar_blocks"] == 1
    assert found["similar_blocks"] == 3
    assert found["stages"][0]["ratio"] == [[1.0] * 3] * 3
    assert found["stages"][0]["mean_cosine"] == [[1.0] * 3] * 3


def test_maps_that_share_no_output_token_are_not_similar() -> None:
    """Columns with disjoint supports are orthogonal."""
    first = torch.zeros(1, 2, 6, 6)
    first[..., :3, :] = 1 / 6
    second = torch.zeros(1, 2, 6, 6)
    second[..., 3:, :] = 1 / 6
    found = seen(first, second).numbers
    assert found["ratio_of_similar_blocks"] == 0
    assert found["stages"][0]["ratio"] == [[1.0, 0.0], [0.0, 1.0]]


def test_uniform_groups_have_a_known_cosine_with_the_whole() -> None:
    """Uniform inside g groups against uniform over all: 1 / sqrt(g)."""
    whole = torch.full((1, 2, 6, 6), 1 / 6)
    groups = torch.block_diag(*[torch.full((2, 2), 0.5)] * 3).expand(1, 2, 6, 6)
    found = seen(whole, groups).numbers["stages"][0]
    assert found["mean_cosine"][0][1] == pytest.approx(1 / math.sqrt(3), abs=1e-6)


def test_eq_2_is_the_cosine_of_columns() -> None:
    first, second = random_maps(1, 1, 2, seed=1), random_maps(1, 1, 2, seed=2)
    a, b = first[0, 0, :, 1].tolist(), second[0, 0, :, 1].tolist()
    by_hand = (a[0] * b[0] + a[1] * b[1]) / (math.hypot(*a) * math.hypot(*b))
    found = cross_layer([unit_columns(first), unit_columns(second)])
    assert found.shape == (1, 1, 2, 2, 2)
    assert found[0, 0, 1, 0, 1] == pytest.approx(by_hand, abs=1e-6)


def test_eq_7_counts_the_pairs_above_tau() -> None:
    maps = random_maps(4, seed=1), random_maps(4, seed=2)
    cosines = cross_layer([unit_columns(m) for m in maps])[..., 0, 1]
    for tau in (0.2, 0.5, 0.9):
        by_hand = float((cosines > tau).double().mean())
        found = seen(*maps, tau=tau).numbers["stages"][0]
        assert found["ratio"][0][1] == pytest.approx(by_hand, abs=1e-6)
    assert found["mean_cosine"][0][1] == pytest.approx(float(cosines.mean()), abs=1e-5)


def test_batches_do_not_matter() -> None:
    maps = [random_maps(5, seed=seed) for seed in range(3)]
    whole, parts = seen(*maps).numbers, seen(*maps, batches=3).numbers
    assert whole["images"] == parts["images"] == 5
    assert torch.allclose(
        torch.tensor(whole["stages"][0]["mean_cosine"]),
        torch.tensor(parts["stages"][0]["mean_cosine"]),
    )


def test_a_block_is_similar_where_either_neighbour_is() -> None:
    assert similar_blocks([0.9, 0.1, 0.8, 0.81]) == [True, True, False, True, True]
    assert similar_blocks([]) == [False]


def test_stages_are_not_compared() -> None:
    layers = [layer(0), layer(1, stage=2)]
    observer = CrossLayerSimilarity(layers)
    for one in layers:
        observer.see_map(one, random_maps())
    observer.end_batch()
    found = observer.finding().numbers
    assert found["similar_blocks"] == 0
    assert [len(stage["ratio"]) for stage in found["stages"]] == [1, 1]
    assert "only within a stage" in found["meaning"]


def test_what_does_not_fit_is_compared_at_some_input_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = [layer(index, tokens=64, heads=1) for index in range(2)]
    assert spread_columns(group) is None
    monkeypatch.setattr(module, "MOST_HELD", 2 * 64 * 20)
    columns = spread_columns(group)
    assert columns is not None
    assert len(columns) == 20
    assert (int(columns[0]), int(columns[-1])) == (0, 63)
    assert len(columns.unique()) == 20


def test_the_nearest_blocks_are_those_on_both_sides() -> None:
    ratio = torch.tensor([[1.0, 0.8, 0.1], [0.8, 1.0, 0.4], [0.1, 0.4, 1.0]])
    assert nearest_blocks(ratio, 1) == pytest.approx([0.8, 0.6, 0.4])
    assert nearest_blocks(ratio, 4) == pytest.approx([0.45, 0.6, 0.25])
