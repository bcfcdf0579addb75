"""Pooling."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from timm.layers import BlurPool2d
from torch import nn

from vitnas.nn.layers.pooling import MaxBlurPool, build_pooling


def test_a_kind_has_its_layer() -> None:
    assert isinstance(build_pooling(4, "max"), nn.MaxPool2d)
    assert isinstance(build_pooling(4, "max_blur"), MaxBlurPool)


@pytest.mark.parametrize("kind", ["max", "max_blur"])
def test_halves_the_grid_and_keeps_the_mean(kind: str) -> None:
    images = torch.full((2, 6, 4, 10), 3.0)
    torch.testing.assert_close(build_pooling(6, kind)(images), torch.full((2, 6, 2, 5), 3.0))


def test_inside_the_grid_it_is_timms_blur_of_all_maxima() -> None:
    torch.manual_seed(0)
    images = torch.randn(2, 5, 12, 16)
    maxima = F.max_pool2d(images, 2, stride=1)
    inside = (slice(None), slice(None), slice(1, -1), slice(1, -1))
    torch.testing.assert_close(MaxBlurPool(5)(images)[inside], BlurPool2d(5)(maxima)[inside])


def test_an_image_and_its_mirror_give_mirrored_pictures() -> None:
    torch.manual_seed(0)
    images, pool = torch.randn(2, 3, 8, 8), MaxBlurPool(3)
    torch.testing.assert_close(pool(images.flip(-1)), pool(images).flip(-1))


def test_a_shift_by_a_pixel_changes_less_than_with_max_pooling() -> None:
    torch.manual_seed(0)
    images = F.avg_pool2d(torch.randn(8, 4, 34, 34), 3, stride=1)

    def change(kind: str) -> float:
        pool = build_pooling(4, kind)
        here, moved = pool(images), pool(images.roll(1, -1))
        inside = (slice(None), slice(None), slice(1, -1), slice(1, -1))
        return float((moved - here)[inside].norm() / here[inside].norm())

    assert change("max_blur") < 0.75 * change("max")


def test_nothing_is_trained_or_kept() -> None:
    pool = MaxBlurPool(4)
    assert not list(pool.parameters())
    assert not pool.state_dict()


def test_a_network_built_on_meta_gets_its_filter_back() -> None:
    with torch.device("meta"):
        pool = MaxBlurPool(3)
    assert pool.filter.is_meta
    pool = pool.to_empty(device="cpu")
    pool.init_non_persistent_buffers()
    assert torch.equal(pool.filter, MaxBlurPool(3).filter)
