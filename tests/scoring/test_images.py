"""Image files reach a network as they reach its model.py; many are decoded in their order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.exported.source.parity import module_of
from tests.nn.networks import vit
from vitnas.data.decode import BrokenImage
from vitnas.errors import ConfigError, DataError
from vitnas.exported.preprocessing import Preprocessing
from vitnas.exported.source.write import model_source
from vitnas.scoring.images import (
    check_channels,
    dealt,
    decoded,
    listed,
    normalised,
    prepared,
)

NOISE = np.random.default_rng(0).integers(0, 256, (50, 37, 3), dtype=np.uint8)


def picture(kind: str, place: Path) -> Path:
    image = Image.fromarray(NOISE)
    if kind == "16 bits":
        image = Image.fromarray(NOISE[:, :, 0].astype(np.uint16) * 257 + 5)
    elif kind == "turned":
        exif = Image.Exif()
        exif[0x0112] = 6
        image.save(place / "a.jpg", exif=exif)
        return place / "a.jpg"
    elif kind != "RGB":
        image = image.convert(kind)
    path = place / ("a.tif" if kind == "CMYK" else "a.png")
    image.save(path)
    return path


HOWS = [
    Preprocessing((0.4,), (0.2,), "stretch", "bilinear"),
    Preprocessing((0.4,), (0.2,)),
    Preprocessing((0.4,), (0.2,), "cover", "lanczos", 0.875),
]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["RGB", "L", "P", "RGBA", "LA", "1", "CMYK", "16 bits", "turned"])
@pytest.mark.parametrize("how", HOWS, ids=lambda how: f"{how.fit}-{how.interpolation}")
def test_an_image_is_what_model_py_makes_of_it(
    kind: str, channels: int, how: Preprocessing, tmp_path: Path
) -> None:
    path = picture(kind, tmp_path)
    how = Preprocessing(
        how.mean * channels, how.std * channels, how.fit, how.interpolation, how.crop
    )
    module = module_of(model_source(vit(in_chans=channels), how, "test"))
    found = normalised(prepared(path, how, channels, (32, 32))[None], how)[0]
    torch.testing.assert_close(found, module.preprocess(path), rtol=1e-5, atol=1e-5)


def test_files_come_in_their_order_and_a_broken_one_in_its_place(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(300)]
    for number, path in enumerate(paths):
        Image.new("L", (4, 4), number % 256).save(path)
    paths[7].write_bytes(b"nothing")
    paths[9].unlink()
    found = list(decoded(paths, HOWS[0], 1, (2, 2)))
    assert [path for path, _ in found] == paths
    for number, (_, pixels) in enumerate(found):
        if number in (7, 9):
            assert isinstance(pixels, BrokenImage)
        else:
            assert isinstance(pixels, torch.Tensor)
            assert pixels.unique().tolist() == [number % 256]


def test_lists_of_a_size() -> None:
    assert [len(batch) for batch in dealt(range(7), 3)] == [3, 3, 1]
    assert list(dealt([], 3)) == []


def test_files_and_folders_in_the_order_given(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    for name in ("b.png", "a.JPG", "notes.txt"):
        (below / name).write_bytes(b"")
    single = tmp_path / "z.dat"
    assert listed([single, below]) == [single, below / "a.JPG", below / "b.png"]


def test_one_path_stands_for_itself_and_not_for_its_letters(tmp_path: Path) -> None:
    path = picture("RGB", tmp_path)
    for given in (path, str(path), tmp_path, str(tmp_path)):
        assert listed(given) == [path]


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no image"):
        listed([tmp_path])


def test_two_channels_are_no_image_file_s() -> None:
    check_channels("net", 1)
    with pytest.raises(ConfigError, match="net: in_chans = 2: image files are grey or in colour"):
        check_channels("net", 2)
