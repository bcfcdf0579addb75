"""Similarity of features to the last block's."""

from __future__ import annotations

import pytest
import torch

from tests.diagnose.networks import layer
from vitnas.diagnose.features import SimilarityToLast, token_cosine


def test_the_cosine_is_of_tokens() -> None:
    last = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    turned = torch.tensor([[[0.0, 1.0], [0.0, 5.0]]])
    assert token_cosine(turned, last).tolist() == [0.5]
    assert token_cosine(-last, last).tolist() == [-1.0]


def test_every_block_is_compared_with_the_last_of_its_stage() -> None:
    layers = [layer(0), layer(1, last=True), layer(2, stage=2, tokens=3, dim=8, last=True)]
    observer = SimilarityToLast([*layers, layer(3, mixer="broad", stage=2)])
    x = torch.randn(2, 6, 4)
    for one, features in zip(layers, (-x, x, torch.randn(2, 3, 8)), strict=True):
        observer.see_features(one, features)
    observer.see_features(layer(3, mixer="broad"), torch.randn(2, 3, 8))
    observer.end_batch()
    assert observer.images == 2
    assert list(observer.values().values()) == pytest.approx([-1, 1, 1], abs=1e-6)


def test_the_summary_says_from_where_features_stay() -> None:
    layers = [layer(index, last=index == 3) for index in range(4)]
    observer = SimilarityToLast(layers)
    x = torch.randn(1, 6, 4)
    for one, features in zip(layers, (x, -x, x, x), strict=True):
        observer.see_features(one, features)
    assert observer.finding().summary.endswith("from block 3 on")
    observer = SimilarityToLast(layers)
    for one, features in zip(layers, (x, x, -x, x), strict=True):
        observer.see_features(one, features)
    assert observer.finding().summary == "block 3 has cosine -1.00 with the last"
