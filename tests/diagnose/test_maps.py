"""The attention maps of single images: how far they spread, and what is drawn."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.diagnose.networks import layer, random_maps
from vitnas.diagnose.maps import AttentionMaps, spread

IMAGES = torch.zeros(3, 1, 8, 12, dtype=torch.uint8)


def test_entropy_is_between_one_token_and_all_alike() -> None:
    assert spread(torch.eye(6)) == pytest.approx((0.0, 1.0))
    assert spread(torch.full((6, 6), 1 / 6)) == pytest.approx((1.0, 1 / 6))
    mixed = random_maps(1)[0, 0]
    assert spread(mixed) == pytest.approx(spread(-mixed)), "negative entries count by their size"


def test_the_numbers_are_the_mean_over_heads_of_the_first_image() -> None:
    maps = random_maps(2)
    observer = AttentionMaps([layer(0)], IMAGES[:1])
    observer.see_map(layer(0), maps)
    finding = observer.finding()
    (found,) = finding.numbers["layers"]
    assert found["received"] == pytest.approx(maps[0].mean((0, 1)).tolist(), abs=1e-6)
    assert sum(found["received"]) == pytest.approx(1, abs=1e-5)
    assert found["entropy"] == pytest.approx(spread(maps[0].mean(0))[0], abs=1e-6)
    assert finding.numbers["images"] == [0]
    assert "of_each" not in found
    assert "images" not in finding.summary
    assert finding.figure is not None


def test_of_several_images_there_are_means_and_each_for_itself() -> None:
    maps = random_maps(4)
    layers = [layer(0), layer(1, prefix=2, tokens=6, grid=(2, 2)), layer(2, grid=None)]
    observer = AttentionMaps(layers, IMAGES, first=5)
    for batch in (maps[:2], maps[2:]):  # the fourth image is not asked for
        for each in layers:
            observer.see_map(each, batch)
    finding = observer.finding()
    assert finding.numbers["images"] == [5, 6, 7]
    found = finding.numbers["layers"][1]
    expected = [spread(one.mean(0))[0] for one in maps[:3]]
    assert [one["entropy"] for one in found["of_each"]] == pytest.approx(expected, abs=1e-6)
    assert found["entropy"] == pytest.approx(sum(expected) / 3, abs=1e-6)
    assert found["received"] == pytest.approx(maps[:3].mean((0, 1, 2)).tolist(), abs=1e-6)
    assert finding.summary.endswith("(1 = all tokens alike) in 3 images")
    assert finding.figure is not None


def test_each_image_has_its_place_in_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    titles = list[str]()

    def png(figure: Any) -> bytes:
        titles.extend(axes.get_title(loc="left") for axes in figure.axes)
        return b""

    monkeypatch.setattr("vitnas.diagnose.draw.png", png)
    observer = AttentionMaps([layer(0), layer(1)], IMAGES[:2], first=7)
    for each in observer.layers:
        observer.see_map(each, random_maps(2))
    observer.finding()
    assert [title for title in titles if title] == ["image 7", "1", "2", "image 8", "1", "2"]


def test_at_most_eight_blocks_are_drawn_and_the_last_is_one_of_them() -> None:
    layers = [layer(index) for index in range(20)]
    drawn = AttentionMaps(layers, IMAGES).drawn
    assert len(drawn) <= 8
    assert drawn[-1] is layers[-1]
    assert AttentionMaps(layers[:3], IMAGES).drawn == layers[:3]
