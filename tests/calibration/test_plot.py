"""The picture is there; what it looks like is looked at."""

from __future__ import annotations

import io

import pytest

from tests.calibration.made_up import judged
from vitnas.calibration.plot import _places, calibration_png


@pytest.mark.slow
def test_a_picture_is_drawn() -> None:
    from PIL import Image

    image = Image.open(io.BytesIO(calibration_png(judged())))
    assert image.size == (1155, 605)


def test_what_costs_nothing_stands_left_of_all_else() -> None:
    found = judged()
    places = dict(zip((one.name for one in found.proxies), _places(found), strict=True))
    free = [places.pop(name) for name in ("FLOPs", "parameters")]
    assert free[0] != free[1]
    assert max(free) < min(places.values())
