"""The attention maps of one image: how far they spread, and what is drawn."""

from __future__ import annotations

import pytest
import torch

from tests.diagnose.networks import layer, random_maps
from vitnas.diagnose.maps import AttentionMaps, spread

IMAGE = torch.zeros(1, 8, 12, dtype=torch.uint8)


def test_entropy_is_between_one_token_and_all_alike() -> None:
    assert spread(torch.eye(6)) == pytest.approx((0.0, 1.0))
    assert spread(torch.full((6, 6), 1 / 6)) == pytest.approx((1.0, 1 / 6))
    mixed = random_maps(1)[0, 0]
    assert spread(mixed) == pytest.approx(spread(-mixed)), "negative entries count by their size"


def test_the_numbers_are_the_mean_over_heads_of_the_first_image() -> None:
    maps = random_maps(2)
    observer = AttentionMaps([layer(0)], IMAGE)
    observer.see_map(layer(0), maps)
    finding = observer.finding()
    (found,) = finding.numbers["layers"]
    assert found["received"] == pytest.approx(maps[0].mean((0, 1)).tolist(), abs=1e-6)
    assert sum(found["received"]) == pytest.approx(1, abs=1e-5)
    assert found["entropy"] == pytest.approx(spread(maps[0].mean(0))[0], abs=1e-6)
    assert finding.figure is not None


def test_at_most_eight_blocks_are_drawn_and_the_last_is_one_of_them() -> None:
    layers = [layer(index) for index in range(20)]
    drawn = AttentionMaps(layers, IMAGE).drawn
    assert len(drawn) <= 8
    assert drawn[-1] is layers[-1]
    assert AttentionMaps(layers[:3], IMAGE).drawn == layers[:3]
