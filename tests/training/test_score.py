"""Scores: shares of the images in percent, and what is no score."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from vitnas.training.images import Images
from vitnas.training.score import Diverged, batch_on, evaluate, score
from vitnas.training.split import Split


def test_logits_that_are_not_finite_are_no_accuracy(digits: Images) -> None:
    linear = nn.Linear(64, 10)
    nn.init.constant_(linear.bias, float("nan"))
    model = nn.Sequential(nn.Flatten(), linear)
    with pytest.raises(Diverged, match="logits"):
        evaluate(model, digits.val)


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
def test_accuracy_is_a_share_of_the_images_in_percent(batch_size: int) -> None:
    x = torch.zeros(10, 1, 1, 2, dtype=torch.uint8)
    x[:7, 0, 0, 1] = 255
    ones = torch.ones(10, dtype=torch.int64)
    split = Split(x, ones, torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    linear = nn.Linear(2, 2)
    nn.init.eye_(linear.weight)
    nn.init.zeros_(linear.bias)
    model = nn.Sequential(nn.Flatten(), linear)
    found = score(model, split, batch_size)
    assert found.top1 == evaluate(model, split, batch_size) == 70.0
    right, wrong = 255.0 - math.log1p(math.exp(255.0)), -math.log(2)  # of 7 images and of 3
    assert found.log_likelihood == pytest.approx((7 * right + 3 * wrong) / 10, abs=1e-6)
    assert not model.training


@pytest.mark.parametrize(
    ("side", "most", "expected"), [(8, 512, 512), (32, 512, 256), (64, 512, 64), (224, 512, 16)]
)
def test_large_images_are_scored_a_few_at_a_time_on_the_cpu(
    side: int, most: int, expected: int
) -> None:
    """With 512 images of 64 px at a time a worker took up to 495 MB more, and was slower."""
    x = torch.zeros(1, 3, 1, 1, dtype=torch.uint8).expand(600, 3, side, side)
    split = Split(x, torch.zeros(600, dtype=torch.int64), torch.zeros(3, 1, 1), torch.ones(3, 1, 1))
    assert batch_on(torch.device("cpu"), most, split) == expected
    assert batch_on(torch.device("cpu"), 3, split) == 3
    assert batch_on(torch.device("meta"), most, split) == most
    seen: list[int] = []

    class First(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(len(images))
            return torch.tensor([1.0, 0.0]).expand(len(images), 2)

    assert evaluate(First(), split, most) == 100.0
    assert max(seen) == expected
    assert sum(seen) == 600
