"""The picture of the papers' printed top-1."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from vitnas.cli import app
from vitnas.nn.zoo import printed
from vitnas.nn.zoo.picture import FAMILIES, points
from vitnas.plotting import is_picture

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


@pytest.mark.slow
def test_the_picture_is_written_as_its_name_says(tmp_path: Path) -> None:
    """Also over a picture of ours; a picture without names would be smaller."""
    for name in ("a.png", "new/b.SVG", "a.png"):
        result = CliRunner().invoke(app, ["zoo", "--plot", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert result.stdout == f"{tmp_path / name}: 49 printed accuracies of 41 networks\n"
    png, svg = (tmp_path / "a.png").read_bytes(), (tmp_path / "new/b.SVG").read_bytes()
    assert is_picture(png[:4096])
    assert is_picture(svg[:4096])
    assert Image.open(io.BytesIO(png)).size == (1560, 910)
    for text in ("T 384", "B36", "SReT-*, no sliced groups", "counted by closed form"):
        assert f"<!-- {text}" in svg.decode() or text in svg.decode()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.png", "b.SVG", "new"]
