"""What the picture of the papers' printed top-1 holds."""

from __future__ import annotations

import pytest

from vitnas.nn.zoo import printed
from vitnas.nn.zoo.accuracies import FAMILIES, points

ROW_OF_ANOTHER = {"sret_s_512": "sret_star_s_512", "sret_b_table12": "sret_b"}


def test_every_full_training_is_drawn_once() -> None:
    full = {
        (name, one.training): float(one.percent)
        for name, entry in printed().items()
        for one in entry.top1
        if one.training != "short"
    }
    drawn = {(point.name, point.training): point.top1 for point in points()}
    assert len(drawn) == len(points())
    same = {of: full.pop(of) for of in list(full) if of[0] in ROW_OF_ANOTHER}
    assert drawn == full
    assert all(drawn[ROW_OF_ANOTHER[name], how] == top1 for (name, how), top1 in same.items())


def test_sizes_are_counted_and_printed_ones_are_kept_beside_them() -> None:
    (point,) = (point for point in points() if point.name == "cskaformer_b36")
    assert (point.top1, point.tag, point.printed) == (85.7, "B36", (24.2, 119.0))
    assert (point.flops, point.params) == pytest.approx((41.251, 119.493), abs=5e-4)
    sizes = {point.img_size for point in points()}
    assert sizes == {224, 384, 512}


def test_shapes_tell_families_of_a_paper_apart() -> None:
    assert len({(one.paper, one.shape) for one in FAMILIES.values()}) == len(FAMILIES)
    assert len({point.colour for point in points()}) == 4
