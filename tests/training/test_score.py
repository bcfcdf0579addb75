"""Scores: shares of the images in percent, and what is no score."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from vitnas.training.images import Images
from vitnas.training.score import Diverged, evaluate, score
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
