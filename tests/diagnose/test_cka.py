"""Centred kernel alignment: identities, invariances, and two ways to the same estimate."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.diagnose.networks import layer
from vitnas.diagnose.cka import LayerCka, hsic_matrix, linear_gram, normalised


def features(number: int, width: int, seed: int) -> Tensor:
    return torch.randn(number, width, generator=torch.Generator().manual_seed(seed))


def related(number: int, width: int) -> tuple[Tensor, Tensor]:
    """Two sets of features with half of their variance in common."""
    shared = features(number, width, 0)
    return tuple(shared + features(number, width, seed) for seed in (1, 2))  # type: ignore[return-value]


def linear_cka(x: Tensor, y: Tensor) -> float:
    """Linear CKA (BViT, Eq. 9) of two sets of features of the same n images, `(n, p)`, `(n, q)`."""
    hsic = hsic_matrix([linear_gram(x), linear_gram(y)], unbiased=False)
    return float(normalised(hsic)[0, 1])


def test_a_layer_with_itself_is_one() -> None:
    x = features(20, 7, 0)
    assert linear_cka(x, x) == pytest.approx(1)


def test_rotations_scales_and_shifts_do_not_matter() -> None:
    x, y = related(30, 8)
    rotation = torch.linalg.qr(features(8, 8, 3)).Q
    plain = linear_cka(x, y)
    assert 0.1 < plain < 0.9
    assert linear_cka(x @ rotation, y) == pytest.approx(plain, abs=1e-5)
    assert linear_cka(3 * x + 5, y) == pytest.approx(plain, abs=1e-5)


def test_it_is_kornblith_and_colleagues_form_over_features() -> None:
    """|Y^T X|^2 / (|X^T X| |Y^T Y|) with centred X and Y: another way to the same number."""
    x, y = (part - part.mean(0) for part in related(25, 6))
    by_features = (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())
    assert linear_cka(x, y) == pytest.approx(float(by_features), abs=1e-5)


def test_hsic_1_is_songs_formula() -> None:
    n = 9
    grams = [linear_gram(part) for part in related(n, 5)]
    k, m = (gram - torch.diag(gram.diagonal()) for gram in grams)
    one = torch.ones(n, dtype=torch.float64)
    by_formula = torch.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
    by_formula = (by_formula - 2 / (n - 2) * (one @ k @ m @ one)) / (n * (n - 3))
    torch.testing.assert_close(hsic_matrix(grams, unbiased=True)[0, 1], by_formula)


def observed(x: Tensor, y: Tensor, *, most_bytes: int, batch: int = 16) -> LayerCka:
    layers = [layer(i, tokens=1, dim=part.shape[1]) for i, part in enumerate((x, y))]
    observer = LayerCka(layers, len(x), most_bytes)
    for parts in zip(x.split(batch), y.split(batch), strict=True):
        for one, part in zip(layers, parts, strict=True):
            observer.see_features(one, part[:, None])
        observer.end_batch()
    return observer


def test_what_fits_is_eq_9_whatever_the_batches() -> None:
    x, y = related(50, 6)
    observer = observed(x, y, most_bytes=1 << 20)
    assert not observer.unbiased
    assert float(observer.matrix()[0, 1]) == pytest.approx(linear_cka(x, y), abs=1e-6)


def test_minibatches_come_close_to_the_full_estimate() -> None:
    """With many images both estimate the same; 20 groups of 50 against 1,000 at once."""
    x, y = related(1000, 10)
    observer = observed(x, y, most_bytes=50 * 2 * 4 * 10)
    assert observer.unbiased
    assert observer.group_size == 50
    assert float(observer.matrix()[0, 1]) == pytest.approx(linear_cka(x, y), abs=0.02)
    assert observer.finding().numbers["images"] == 1000


def test_minibatches_do_not_take_chance_for_similarity() -> None:
    """More features than images: Eq. 9 calls unrelated features similar, HSIC_1 does not."""
    x, y = features(400, 60, 0), features(400, 60, 1)
    by_groups = float(observed(x, y, most_bytes=20 * 2 * 4 * 60).matrix()[0, 1])
    assert abs(by_groups) < 0.05
    assert linear_cka(x[:20], y[:20]) > 0.6


def test_groups_are_dealt_evenly_and_a_rest_of_three_is_left_out() -> None:
    x, y = related(43, 4)
    observer = observed(x, y, most_bytes=8 * 2 * 4 * 4)
    assert (observer.groups, observer.group_size) == (6, 8)
    assert observer.finding().numbers["images"] == 40


def test_features_without_variance_have_no_value() -> None:
    x = features(10, 4, 0)
    found = observed(x, torch.ones(10, 4), most_bytes=1 << 20).finding().numbers["cka"]
    assert found == [[1.0, None], [None, None]]
