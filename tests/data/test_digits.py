"""scikit-learn's digits."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from vitnas.config.data import DataConfig
from vitnas.data.digits import _table
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


def test_the_table_is_what_scikit_learn_loads_and_is_read_without_importing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pixels, labels = load_digits(return_X_y=True)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert np.array_equal(_table(), np.column_stack((pixels, labels)))


def test_scikit_learn_itself_is_asked_where_its_file_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = _table()
    monkeypatch.setattr("vitnas.data.digits._FILE", ("datasets", "moved.csv.gz"))
    assert np.array_equal(_table(), before)
