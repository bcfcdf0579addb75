"""scikit-learn's digits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from vitnas.config.data import DataConfig
from vitnas.data import digits
from vitnas.data.table import read_source


def test_digits_are_all_there_and_the_test_split_is_a_fifth() -> None:
    source = read_source(DataConfig(), (8, 8))
    assert source.test is not None
    assert len(source.train[1]) + len(source.test[1]) == 1797
    assert len(source.test[1]) == pytest.approx(1797 / 5, abs=5)
    assert source.train[0][:].dtype == torch.uint8
    assert source.train[0][:].max() == 255


def test_test_digits_do_not_depend_on_the_split_seed() -> None:
    one, two = (read_source(DataConfig(split_seed=seed), (8, 8)) for seed in (0, 1))
    assert one.test is not None
    assert two.test is not None
    assert torch.equal(one.test[0][:], two.test[0][:])


@pytest.mark.parametrize("is_found", [True, False])
def test_the_table_is_scikit_learn_s(is_found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever its file lies."""
    if not is_found:
        monkeypatch.setattr(digits, "find_spec", lambda name: None)
    pixels, classes = load_digits(return_X_y=True)
    table = digits._table()
    assert np.array_equal(table[:, :-1], pixels)
    assert np.array_equal(table[:, -1], classes)
