"""Numbers for JSON."""

from __future__ import annotations

import json

import torch

from vitnas.diagnose.observer import plain


def test_tensors_become_rounded_lists() -> None:
    assert plain(torch.tensor([[1 / 3, 2.0], [0.1234567, -1e-9]])) == [
        [0.333333, 2.0],
        [0.123457, 0.0],
    ]
    assert plain(torch.tensor(1 / 3), digits=2) == 0.33
    assert plain(torch.zeros(0)) == []


def test_what_is_not_finite_is_null_and_the_rest_stays() -> None:
    values = plain(torch.tensor([1.0, float("nan"), float("inf"), -float("inf")]))
    assert values == [1.0, None, None, None]
    assert json.dumps(values, allow_nan=False) == "[1.0, null, null, null]"


def test_no_gradient_and_no_half_precision_is_in_the_way() -> None:
    weight = torch.tensor([0.5, 1.5], dtype=torch.bfloat16, requires_grad=True)
    assert plain(weight) == [0.5, 1.5]
