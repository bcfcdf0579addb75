"""What the numbers of a tensor are, and whether they are any."""

from __future__ import annotations

import pytest
import torch

from vitnas.errors import DataError
from vitnas.nn.numbers import check_finite, kind_of


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (torch.bfloat16, "floats"),
        (torch.float64, "floats"),
        (torch.int8, "whole numbers"),
        (torch.bool, "truth values"),
        (torch.complex64, "complex numbers"),
    ],
)
def test_kinds(dtype: torch.dtype, kind: str) -> None:
    tensor = torch.zeros(2, dtype=dtype)
    assert kind_of(tensor) == kind
    check_finite("x", tensor)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), complex(0, float("nan"))])
def test_what_is_not_finite_is_refused_by_name(bad: complex) -> None:
    with pytest.raises(DataError, match=r"^a\.pth: 'head\.bias' has numbers that are not finite$"):
        check_finite("head.bias", torch.tensor([0.0, bad]), "a.pth")
    with pytest.raises(DataError, match=r"^weights: "):
        check_finite("head.bias", torch.tensor([bad]))
