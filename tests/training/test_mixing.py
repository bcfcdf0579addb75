"""Mixup, CutMix and erasing: timm's, on our batches."""

from __future__ import annotations

import pytest
import torch

from vitnas.config.recipe import Recipe
from vitnas.training.device import own_all_randomness
from vitnas.training.mixing import Mixing

CPU = torch.device("cpu")
Y = torch.arange(7)


def batch() -> torch.Tensor:
    return torch.randn(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def mixing(**fields: float) -> Mixing:
    return Mixing(Recipe.model_validate(fields), 10, CPU)


def test_nothing_asked_is_nothing_done() -> None:
    x, y = mixing()(batch(), Y)
    assert torch.equal(x, batch())
    assert torch.equal(y, Y)


@pytest.mark.parametrize("fields", [{"mixup": 0.8}, {"cutmix": 1.0}, {"mixup": 0.8, "cutmix": 1.0}])
def test_mixed_targets_are_smoothed_probabilities_and_an_odd_batch_gives_up_one(
    fields: dict[str, float],
) -> None:
    with own_all_randomness(3, CPU):
        x, target = mixing(**fields, label_smoothing=0.1)(batch(), Y)
    assert x.shape == (6, 1, 8, 8)
    assert torch.allclose(target.sum(1), torch.ones(6))
    assert float(target.min()) == pytest.approx(0.01)
    assert not torch.equal(x, batch()[:6])


def test_mixup_weighs_images_as_it_weighs_targets() -> None:
    with own_all_randomness(3, CPU):
        x, target = mixing(mixup=1.0, label_smoothing=0.0)(batch(), Y)
    share = float(target[0, 0])
    assert 0 < share < 1
    assert float(target[0, 5]) == pytest.approx(1 - share, abs=1e-6)
    assert torch.allclose(x[0], share * batch()[0] + (1 - share) * batch()[5], atol=1e-6)


def test_erasing_puts_noise_into_boxes() -> None:
    with own_all_randomness(3, CPU):
        x, y = mixing(random_erasing=1.0)(batch(), Y)
    changed = (x != batch()).flatten(1).sum(1)
    assert int(changed.min()) > 0
    assert int(changed.max()) <= 64 // 2
    assert torch.equal(y, Y)
