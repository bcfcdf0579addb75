"""One split: its share by class, its batches, and two of them as one."""

from __future__ import annotations

from dataclasses import replace

import torch

from vitnas.training.images import Images


def test_a_subset_is_stratified_and_repeatable(digits: Images) -> None:
    half = digits.train.subset(0.5, seed=3)
    assert torch.equal(half.x, digits.train.subset(0.5, seed=3).x)
    whole = digits.train.y.bincount()
    assert (half.y.bincount() - whole / 2).abs().max() <= 0.5
    assert digits.train.subset(1.0, seed=3) is digits.train


def test_batches_are_all_images_in_their_order(digits: Images) -> None:
    split = digits.train
    parts = list(split.batches(100))
    assert [len(y) for _, y in parts] == [100] * (len(split) // 100) + [len(split) % 100]
    assert torch.equal(torch.cat([x for x, _ in parts]), split.x)
    assert torch.equal(torch.cat([y for _, y in parts]), split.y)


def test_a_sum_has_both_parts_and_what_a_teacher_said_of_them(digits: Images) -> None:
    split = digits.train
    whole = replace(split, taught=torch.rand(len(split), 10))
    first, rest = whole.of(torch.arange(7)), whole.of(torch.arange(7, len(split)))
    joined = first + rest
    assert torch.equal(joined.x, split.x)
    assert torch.equal(joined.y, split.y)
    assert joined.taught is not None
    assert whole.taught is not None
    assert torch.equal(joined.taught, whole.taught)
    assert (first + split).taught is None


def test_normalised_images_have_mean_0_and_deviation_1(digits: Images) -> None:
    x = digits.train.normalise(digits.train.x)
    assert abs(float(x.mean())) < 1e-4
    assert abs(float(x.std()) - 1) < 1e-3
