"""Mean attention distance: grids that can be computed by hand."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.diagnose.networks import layer, random_maps
from vitnas.diagnose.distance import AttentionDistance, patch_weights, token_distances


def seen(attention: Tensor, image_hw: tuple[int, int], **facts: Any) -> dict[str, Any]:
    one = layer(**{"tokens": attention.shape[-1], "heads": attention.shape[1], **facts})
    observer = AttentionDistance([one], image_hw)
    observer.see_map(one, attention)
    found: dict[str, Any] = observer.finding().numbers["layers"][0]
    return found


def test_distances_on_a_grid() -> None:
    found = token_distances((2, 2), (3.0, 4.0))
    assert found[0].tolist() == [0, 4, 3, 5]


def test_uniform_attention_looks_the_mean_distance() -> None:
    """2 x 2 tokens: each is 0, 1, 1 and sqrt(2) away from the four."""
    uniform = torch.full((3, 2, 4, 4), 0.25)
    found = seen(uniform, (16, 16), grid=(2, 2))
    mean = (2 + sqrt(2)) / 4
    assert found["tokens"] == pytest.approx([mean] * 2, abs=1e-5)
    assert found["pixels"] == pytest.approx([8 * mean] * 2, abs=1e-4)
    assert found["uniform_tokens"] == pytest.approx(mean, abs=1e-5)
    assert found["uniform_pixels"] == pytest.approx(8 * mean, abs=1e-4)


def test_looking_at_oneself_is_no_distance_and_next_door_is_one() -> None:
    own = torch.eye(4)
    next_door = torch.eye(4)[[1, 0, 3, 2]]
    found = seen(torch.stack([own, next_door])[None], (8, 32), grid=(2, 2))
    assert found["tokens"] == pytest.approx([0, 1], abs=1e-6)
    assert found["pixels"] == pytest.approx([0, 16], abs=1e-5)  # a token is 4 x 16 pixels


def test_class_tokens_are_left_out() -> None:
    """All that is not for the class token goes next door: one token, whatever the class gets."""
    attention = torch.zeros(1, 1, 3, 3)
    attention[..., 0] = 0.9
    attention[0, 0, 1, 2] = attention[0, 0, 2, 1] = 0.1
    found = seen(attention, (4, 8), grid=(1, 2), prefix=1, tokens=3)
    assert found["tokens"] == pytest.approx([1], abs=1e-6)


def test_negative_maps_count_by_size() -> None:
    weights = patch_weights(-random_maps(), 0)
    torch.testing.assert_close(weights, random_maps())


def test_tokens_without_a_grid_have_no_distance() -> None:
    one = layer(grid=None)
    observer = AttentionDistance([one], (8, 8))
    observer.see_map(one, random_maps())
    assert observer.finding().figure is None
