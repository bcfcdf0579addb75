"""The picture of the papers' printed top-1."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from vitnas.cli import app
from vitnas.plotting import is_picture


@pytest.mark.slow
def test_the_picture_is_written_as_its_name_says(tmp_path: Path) -> None:
    """Also over a picture of ours."""
    for name in ("a.png", "new/b.SVG", "a.png"):
        result = CliRunner().invoke(app, ["zoo", "--plot", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert result.stdout == f"{tmp_path / name}: 49 printed accuracies of 41 networks\n"
    png, svg = (tmp_path / "a.png").read_bytes(), (tmp_path / "new/b.SVG").read_bytes()
    assert is_picture(png[:4096])
    assert is_picture(svg[:4096])
    assert Image.open(io.BytesIO(png)).size == (1560, 910)
    for text in ("T 384", "B36", "SReT-*, no sliced groups", "Parameters and multiply-adds are"):
        assert f"<!-- {text}" in svg.decode()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.png", "b.SVG", "new"]
