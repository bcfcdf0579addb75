"""scikit-learn's digits: 1,797 images of 8 x 8 pixels."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vitnas.config.data import DataConfig
from vitnas.data.source import DataSource, ImageHW, fingerprint_of_pixels, resized, split_by_class

_TEST_SEED = 20260101  # fixed: the test digits are the same in every run


def read(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """The digits, a fifth of each class as test images."""
    table = _table()
    pixels = np.round(table[:, :-1].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    whole = torch.from_numpy(pixels)[:, None]
    images = resized(config, whole, image_hw)
    labels = torch.from_numpy(table[:, -1].astype(np.int64))
    train, test = split_by_class(labels, 0.2, _TEST_SEED)
    names = tuple(str(digit) for digit in range(10))
    same = fingerprint_of_pixels(names, (whole[train], labels[train]))
    return DataSource((images[train], labels[train]), (images[test], labels[test]), names, same)


def _table() -> npt.NDArray[Any]:
    """64 pixels from 0 to 16 and the class of each image, (1797, 65).

    They are read from scikit-learn's file, since to import the package takes longer than to train a
    small network. Where the file lies elsewhere, scikit-learn reads it.
    """
    spec = find_spec("sklearn")
    if spec is not None and spec.origin is not None:
        file = Path(spec.origin).parent / "datasets/data/digits.csv.gz"
        if file.is_file():
            return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    return np.column_stack([pixels, classes])
