"""The plot of replayed searches: a small picture that is known as ours by its first bytes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from tests.replay.made_up import TABLE
from vitnas.errors import RunError
from vitnas.plotting import is_picture
from vitnas.replay.comparison import Pair, compare
from vitnas.report.replay_plot import replay_png, write_replay_png


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return compare(TABLE, ["random"], ["none", "front"], seeds=2, trials=6)


def test_the_picture_is_small_and_is_known_as_ours(pairs: list[Pair]) -> None:
    picture = replay_png(TABLE, pairs)
    image = Image.open(io.BytesIO(picture))
    assert image.size == (1210, 495)
    assert len(image.convert("RGB").getcolors(1 << 16) or []) > 8
    assert len(picture) < 100_000
    assert is_picture(picture[:4096])


def test_a_file_that_cannot_be_written(tmp_path: Path, pairs: list[Pair]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"p\.png: cannot be written: "):
        write_replay_png(TABLE, pairs, tmp_path / "file" / "p.png")
