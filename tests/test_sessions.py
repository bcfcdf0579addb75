"""What a run tells of itself: unknown facts are kept, wrong ones refused, defaults not invented."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vitnas.sessions import Data, Environment, Session


def test_what_another_version_told_is_kept() -> None:
    tree = {"seed": 1, "sessions": [{"device": "cpu", "moon": "full"}], "data": {"name": "digits"}}
    read = Environment.model_validate(tree)
    assert read.told() == tree
    assert (read.last.device, read.last.workers, read.proxy.epochs) == ("cpu", None, None)


def test_a_run_without_sessions_has_an_empty_last_one() -> None:
    assert Environment().last == Session()
    assert Environment().told() == {}


def test_each_size_of_images_may_have_its_own_normalisation() -> None:
    one = Data.model_validate({"mean": [0.5], "std": [0.25]}).normalisation((8, 8))
    assert one is not None
    assert (one.mean, one.std) == ([0.5], [0.25])
    several = Data.model_validate({"by_size": {"8x16": {"mean": [0.1], "std": [0.2]}}})
    found = several.normalisation((8, 16))
    assert found is not None
    assert (found.mean, found.std) == ([0.1], [0.2])
    assert several.normalisation((16, 8)) is None
    assert Data().normalisation((8, 8)) is None


@pytest.mark.parametrize(
    "tree",
    [
        {"seed": "1"},
        {"sessions": [{"workers": -1}]},
        {"sessions": [{"hardware": {"memory_gb": float("nan")}}]},
        {"data": {"num_classes": 1 << 63}},
        {"data": {"name": "\ud800"}},
    ],
)
def test_a_value_of_a_wrong_type_or_size_is_refused(tree: Any) -> None:
    with pytest.raises(ValidationError):
        Environment.model_validate(tree)
