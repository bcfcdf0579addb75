"""Every family builds networks for any small image, and our counter counts them right."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from vitnas.baselines.families import FAMILIES, build_baseline
from vitnas.config.baseline import Baseline
from vitnas.cost.operators import count_operators


def make(family: str, width: int, image_hw: tuple[int, int], in_chans: int = 3) -> Baseline:
    return Baseline(family=family, width=width, image_hw=image_hw, in_chans=in_chans, num_classes=5)


@pytest.mark.parametrize("image_hw", [(8, 8), (28, 28), (64, 48)])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_member_gives_logits(family: str, image_hw: tuple[int, int]) -> None:
    model = build_baseline(make(family, 8, image_hw)).eval()
    assert model(torch.zeros(2, 3, *image_hw)).shape == (2, 5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wider_member_is_larger(family: str) -> None:
    def size(width: int) -> int:
        model = build_baseline(make(family, width, (32, 32)))
        return sum(parameter.numel() for parameter in model.parameters())

    assert size(8) < size(16) < size(32)


@pytest.mark.parametrize("family", FAMILIES)
def test_torch_counts_the_same(family: str) -> None:
    """torch counts two for a multiply-add, and neither norms nor pooling."""
    model = build_baseline(make(family, 6, (16, 16), in_chans=1)).eval()
    ours = count_operators(model, (1, 16, 16))
    products = sum(n for name, n in ours.items() if "norm" not in name and "pool" not in name)
    with FlopCounterMode(display=False) as torchs, torch.no_grad():
        model(torch.zeros(1, 1, 16, 16))
    assert 2 * products == torchs.get_total_flops()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_weight_is_trained(family: str) -> None:
    model = build_baseline(make(family, 4, (8, 8)))
    model(torch.randn(4, 3, 8, 8)).square().sum().backward()
    unused = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert not unused


@pytest.mark.parametrize("family", FAMILIES)
def test_the_smallest_member_can_learn(family: str) -> None:
    """A LayerNorm over two channels lets no gradient through."""

    def share_of_the_stem(width: int) -> float:
        torch.manual_seed(0)
        model = build_baseline(make(family, width, (8, 8)))
        F.cross_entropy(model(torch.randn(16, 3, 8, 8)), torch.arange(16) % 5).backward()
        first, *_, last = (weight for weight in model.parameters() if weight.ndim > 1)
        assert first.grad is not None
        assert last.grad is not None
        return float(first.grad.norm() / last.grad.norm())

    assert share_of_the_stem(FAMILIES[family].least_width) > share_of_the_stem(8) / 10
