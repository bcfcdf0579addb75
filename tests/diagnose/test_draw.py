"""What the figures share: ticks, names of layers, colours; a figure is a PNG."""

from __future__ import annotations

import io
from itertools import pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.diagnose.networks import layer
from vitnas.diagnose import draw
from vitnas.plotting import DPI


@given(st.integers(0, 500), st.integers(1, 40))
def test_ticks_are_few_even_and_start_at_the_first(number: int, most: int) -> None:
    ticks = draw.some_ticks(number, most)
    assert len(ticks) <= most
    assert ticks[:1] == [0][:number]
    assert all(0 <= tick < number for tick in ticks)
    assert len({after - before for before, after in pairwise(ticks)}) <= 1
    if number <= most:
        assert ticks == list(range(number))


def test_the_axis_says_what_its_labels_are() -> None:
    assert draw.block_axis([layer(label="3")]) == "block"
    assert draw.block_axis([layer(label="2.1")]) == "stage.block"
    assert draw.block_axis([layer(label="2.1"), layer(label="2.1p2")]) == "stage.block, p = pass"


def test_a_stage_has_its_grid_in_its_title() -> None:
    assert draw.stage_title(layer(), several=False) == "2 x 3 tokens"
    assert draw.stage_title(layer(prefix=1, stage=2), several=True) == "stage 2: 2 x 3 tokens + 1"
    assert draw.stage_title(layer(grid=None), several=False) == "6 tokens"


def test_colours_of_layers_differ_and_are_not_too_light() -> None:
    colours = draw.depth_colours(12)
    assert len(set(colours)) == 12
    assert all(0.299 * red + 0.587 * green + 0.114 * blue < 0.85 for red, green, blue, _ in colours)
    assert len(draw.depth_colours(1)) == 1


def test_a_figure_is_a_png_of_its_size() -> None:
    figure = draw.new_figure("title", "note", 4.0, 3.0)
    axes = figure.subplots()
    image = draw.heat_map(axes, torch.eye(3), ["1", "2", "3"], "", "block")
    draw.colour_bar(figure, image, axes, "share")
    picture = Image.open(io.BytesIO(draw.png(figure)))
    assert picture.format == "PNG"
    assert picture.size == (4 * DPI, 3 * DPI)
    assert picture.info["Software"] == "vitnas"
