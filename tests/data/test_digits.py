"""scikit-learn's digits."""

from __future__ import annotations

import pytest
import torch

from vitnas.config.data import DataConfig
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
