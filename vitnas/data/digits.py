"""scikit-learn's digits: 1,797 images of 8 x 8 pixels."""

from __future__ import annotations

import numpy as np
import torch

from vitnas.config.data import DataConfig
from vitnas.data.source import DataSource, ImageHW, fingerprint_of_pixels, resized, split_by_class

_TEST_SEED = 20260101  # fixed: the test digits are the same in every run


def read(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """The digits, a fifth of each class as test images."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = np.round(np.asarray(bunch.images) * (255 / 16)).astype(np.uint8)
    whole = torch.from_numpy(pixels)[:, None]
    images = resized(config, whole, image_hw)
    labels = torch.from_numpy(np.asarray(bunch.target, dtype=np.int64))
    train, test = split_by_class(labels, 0.2, _TEST_SEED)
    names = tuple(str(digit) for digit in range(10))
    same = fingerprint_of_pixels(names, (whole[train], labels[train]))
    return DataSource((images[train], labels[train]), (images[test], labels[test]), names, same)
