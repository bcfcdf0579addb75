"""Lists of delegates."""

from __future__ import annotations

import pytest

from tests.nn.networks import ready, vit
from vitnas.deploy.delegates import DELEGATES, aten_operators, lint


def test_what_a_list_lacks_is_counted() -> None:
    refused, numbers = lint({"view": 3, "expand": 2}, {"Gemm": 4, "Where": 1, "NonZero": 1})
    assert refused == {
        "XNNPACK": {"expand": 2},
        "CoreML": {"Where": 1, "NonZero": 1},
        "TensorRT": {"NonZero": 1},
    }
    assert numbers == {"XNNPACK": 5, "CoreML": 6, "TensorRT": 6}


def test_every_list_says_where_it_is_from() -> None:
    assert all("/" in one.source and len(one.takes) > 40 for one in DELEGATES)
    assert all(name == name.lower() for name in DELEGATES[0].takes)


@pytest.mark.slow
def test_the_operators_of_a_network() -> None:
    found = aten_operators(ready(vit()), (3, 32, 32))
    assert found["addmm"] >= 8
    assert found["native_layer_norm"] >= 4
    assert "getitem" not in found
    refused = DELEGATES[0].refused(found)
    assert "native_layer_norm" in refused
    assert "addmm" not in refused
