"""Whether images are those that a network was built for."""

from __future__ import annotations

import pytest
import torch

from vitnas.errors import VitnasError
from vitnas.nn.layers.images import InputSizeError, check_images


def test_the_right_images_pass() -> None:
    check_images(torch.zeros(2, 3, 8, 16), 3, 8, 16)
    check_images(torch.zeros(0, 1, 4, 4, device="meta"), 1, 4, 4)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 16, 8), r"images of 8x16 and was given 16x8: .*\[16, 8\]"),
        ((2, 1, 8, 16), r"3 channels \(in_chans\) and was given 1"),
        ((3, 8, 16), r"an axis for the batch; these have 3 axes"),
    ],
)
def test_others_are_one_line_that_names_both(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputSizeError, match=message) as caught:
        check_images(torch.zeros(shape), 3, 8, 16)
    assert isinstance(caught.value, VitnasError)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
