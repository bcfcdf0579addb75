"""A reference network is named and compared by what it is."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from vitnas.config.baseline import Baseline

DIGITS = Baseline(family="dwcnn", width=4, image_hw=(8, 8), in_chans=1, num_classes=10)


def test_another_network_has_another_key() -> None:
    changes = {"family": "vit", "width": 5, "image_hw": (8, 9), "in_chans": 3, "num_classes": 2}
    keys = {DIGITS.model_copy(update={name: value}).key for name, value in changes.items()}
    assert len(keys | {DIGITS.key}) == len(changes) + 1


def test_it_comes_back_from_json() -> None:
    again = Baseline.model_validate(DIGITS.model_dump(mode="json"))
    assert again == DIGITS
    assert again.key == DIGITS.key
    assert again.name == "dwcnn-4"


def test_a_width_of_nothing_is_refused() -> None:
    with pytest.raises(ValidationError):
        Baseline(family="dwcnn", width=0, image_hw=(8, 8), in_chans=1, num_classes=10)
