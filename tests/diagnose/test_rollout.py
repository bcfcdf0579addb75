"""Attention rollout: the identity, the class token's row, borders between stages."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.diagnose.networks import layer, random_maps
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.rollout import Rollout, merge_rows, mixing

IMAGE = torch.zeros(1, 8, 12, dtype=torch.uint8)


def rolled(layers: list[Layer], maps: list[Tensor], *, reads_class: bool = False) -> Rollout:
    observer = Rollout(layers, IMAGE, reads_class=reads_class)
    for one, attention in zip(layers, maps, strict=True):
        observer.see_map(one, attention[None])
    return observer


def test_identity_attention_rolls_out_to_the_identity() -> None:
    eye = torch.eye(6).expand(2, 6, 6)
    observer = rolled([layer(0), layer(1)], [eye, eye])
    assert observer._rolled is not None
    assert torch.equal(observer._rolled, torch.eye(6))
    torch.testing.assert_close(observer.weights, torch.full((2, 3), 1 / 6))


def test_a_block_is_half_itself_and_half_the_mean_of_its_heads() -> None:
    attention = random_maps(1)[0]
    expected = 0.5 * torch.eye(6) + 0.5 * attention.mean(0)
    torch.testing.assert_close(mixing(attention), expected)
    torch.testing.assert_close(mixing(-attention), expected)
    torch.testing.assert_close(mixing(attention).sum(-1), torch.ones(6))


def test_later_blocks_are_multiplied_from_the_left() -> None:
    """Token 0 reads token 1 in the last block, which has read token 2 in the first."""
    first, last = torch.eye(3), torch.eye(3)
    first[1], last[0] = torch.tensor([0.0, 0, 1]), torch.tensor([0.0, 1, 0])
    observer = rolled(
        [layer(i, tokens=3, grid=(1, 3)) for i in range(2)], [first[None], last[None]]
    )
    assert observer._rolled is not None
    assert observer._rolled[0].tolist() == [0.5, 0.25, 0.25]


def test_the_class_tokens_row_is_read_where_the_head_reads_it() -> None:
    attention = torch.eye(7).repeat(1, 1, 1)
    attention[0, 0] = torch.tensor([0, 0, 0, 1.0, 0, 0, 0])
    one = layer(tokens=7, prefix=1)
    by_class = rolled([one], [attention], reads_class=True)
    assert by_class.weights.tolist() == [[0, 0, 0.5], [0, 0, 0]]
    by_all = rolled([one], [attention])
    torch.testing.assert_close(by_all.weights, torch.full((2, 3), 1 / 6))
    assert by_class.finding().numbers["read_from"] == "class token"


def test_at_a_border_rows_are_averaged_and_keep_their_sum() -> None:
    rows = torch.eye(4 * 6)
    merged = merge_rows(rows, (4, 6), (2, 3))
    assert merged.shape == (6, 24)
    assert merged[0].reshape(4, 6)[:2, :2].tolist() == [[0.25, 0.25], [0.25, 0.25]]
    torch.testing.assert_close(merged.sum(-1), torch.ones(6))
    with_class = merge_rows(torch.eye(25), (4, 6), (2, 3), prefix=1)
    assert with_class[0].tolist() == [1.0] + [0.0] * 24


def test_a_hierarchy_ends_on_the_grid_of_the_first_map() -> None:
    fine = layer(0, tokens=24, grid=(4, 6))
    observer = rolled([fine, layer(1, stage=2)], [random_maps(1, tokens=24)[0], random_maps(1)[0]])
    assert observer.weights.shape == (4, 6)
    assert float(observer.weights.sum()) == pytest.approx(1)
    assert observer.finding().numbers["grid"] == [4, 6]


def test_blocks_without_a_map_are_named() -> None:
    layers = [layer(0), layer(1, absent="dwconv has no attention map", heads=0)]
    observer = Rollout(layers, IMAGE, reads_class=False)
    observer.see_map(layers[0], random_maps(1))
    assert observer.finding().numbers["counted_as_identity"] == ["block 2"]


def test_without_a_grid_there_is_no_picture() -> None:
    assert rolled([layer(grid=None)], [random_maps(1)[0]]).finding().figure is None
