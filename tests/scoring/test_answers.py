"""The numbers agree with scikit-learn's and with the formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, log_loss, top_k_accuracy_score

from vitnas.scoring.answers import BINS, Answers, answers_of, answers_to


def drawn(number: int = 200, outputs: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(outputs, (number,), generator=generator)
    scores = torch.randn(number, outputs, generator=generator)
    scores[torch.arange(number), labels] += 1
    return scores, labels


def in_parts(scores: torch.Tensor, labels: torch.Tensor, size: int) -> Answers:
    parts = zip(scores.split(size), labels.split(size), strict=True)
    return answers_of([answers_to(*part) for part in parts])


def test_they_are_those_of_scikit_learn() -> None:
    scores, labels = drawn()
    found, shares = in_parts(scores, labels, 64), scores.double().softmax(1).numpy()
    assert found.top1 == 100 * top_k_accuracy_score(labels, shares, k=1)
    assert found.top5 == 100 * top_k_accuracy_score(labels, shares, k=5)
    assert found.log_loss == pytest.approx(log_loss(labels, shares))
    matrix = confusion_matrix(labels, scores.argmax(1), labels=range(8))
    assert found.pairs() == {
        (true, other): matrix[true, other] for true, other in np.argwhere(matrix).tolist()
    }
    assert list(found.pairs().values()) == sorted(found.pairs().values(), reverse=True)


def test_the_calibration_error_is_the_formula_s() -> None:
    scores, labels = drawn()
    found, expected = in_parts(scores, labels, 200), 0.0
    for place in range(BINS):
        inside = (found.confidence > place / BINS) & (found.confidence <= (place + 1) / BINS)
        if inside.any():
            gap = found.correct[inside].mean() - found.confidence[inside].mean()
            expected += inside.mean() * abs(gap)
    assert found.calibration_error == pytest.approx(100 * expected)


def test_sure_and_right_is_calibrated_and_sure_and_wrong_is_not() -> None:
    labels = torch.tensor([0, 1])
    sure = 100 * torch.eye(2)
    assert answers_to(sure, labels).calibration_error == pytest.approx(0)
    wrong = answers_to(sure.flip(0), labels)
    assert wrong.calibration_error == pytest.approx(100)
    assert wrong.log_loss == pytest.approx(100)


def test_wilson_s_interval() -> None:
    """9 of 10: Wilson's formula by hand."""
    labels = torch.zeros(10, dtype=torch.int64)
    scores = torch.tensor([[1.0, 0.0]] * 9 + [[0.0, 1.0]])
    low, high = answers_to(scores, labels).top1_interval
    assert (low, high) == pytest.approx((59.585, 98.212), abs=1e-2)


def test_five_classes_have_no_top_5() -> None:
    scores, labels = drawn(outputs=5)
    assert answers_to(scores, labels).top5 is None


def test_equal_scores_are_right_for_top_5_where_they_are_for_top_1() -> None:
    found = answers_to(torch.zeros(1, 10), torch.tensor([0]))
    assert (found.top1, found.top5) == (100, 100)
