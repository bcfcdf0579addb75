"""Pixels as a viewer shows them, whatever the file; and one line for a file that is none."""

from __future__ import annotations

import os
import pickle
import struct
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vitnas.data.decode import (
    BrokenImage,
    check_readable,
    conversions,
    fitted,
    read_grey,
    read_rgb,
    skipped_text,
    without_warnings,
)

UPRIGHT = np.zeros((4, 6, 3), np.uint8)
UPRIGHT[:2, :3] = 255  # the corner above on the left is white


def pixels(path: Path) -> np.ndarray:
    return np.asarray(read_rgb(path))


@pytest.mark.parametrize(
    ("mode", "name", "kinds"),
    [
        ("RGB", "a.png", ()),
        ("RGB", "a.jpg", ()),
        ("L", "a.jpg", ("grey",)),
        ("1", "a.png", ("black and white",)),
        ("P", "a.gif", ("of a palette",)),
        ("I;16", "a.png", ("grey of 16 bits",)),
        ("F", "a.tif", ("floats",)),
        ("CMYK", "a.jpg", ("CMYK",)),
        ("RGBA", "a.png", ("transparent",)),
        ("LA", "a.png", ("grey", "transparent")),
    ],
)
def test_what_is_converted_is_known(
    tmp_path: Path, mode: str, name: str, kinds: tuple[str, ...]
) -> None:
    Image.new(mode, (4, 4)).save(tmp_path / name)
    assert conversions(tmp_path / name) == kinds


def test_of_a_broken_image_no_conversion_is_known(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image")
    assert conversions(tmp_path / "a.png") == ()


@pytest.mark.parametrize(("orientation", "turn"), [(3, 180), (6, 90), (8, 270)])
def test_an_image_is_turned_as_its_exif_says(tmp_path: Path, orientation: int, turn: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(UPRIGHT).rotate(turn, expand=True)
    stored.save(tmp_path / "turned.png", exif=exif)
    assert np.array_equal(pixels(tmp_path / "turned.png"), UPRIGHT)
    assert conversions(tmp_path / "turned.png") == ("turned by EXIF",)


def test_grey_of_16_bits_is_scaled(tmp_path: Path) -> None:
    grey = np.array([[0, 257, 32768, 65535]], np.uint16)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(grey).save(tmp_path / "grey.tif")
    for name in ("grey.png", "grey.tif"):
        assert pixels(tmp_path / name)[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(
    ("floats", "expected"),
    [
        ([0.0, 0.2, 1.0], [0, 51, 255]),
        ([-0.1, 0.5, 1.2], [0, 128, 255]),  # resampling goes beyond the ends a little
        ([0.0, 0.6, 254.7], [0, 1, 255]),
        ([0.0, 0.0, 0.0], [0, 0, 0]),
    ],
)
def test_floats_are_from_0_to_1_or_to_255(
    tmp_path: Path, floats: list[float], expected: list[int]
) -> None:
    Image.fromarray(np.array([floats], np.float32)).save(tmp_path / "x.tif")
    assert pixels(tmp_path / "x.tif")[0, :, 0].tolist() == expected
    assert np.asarray(read_grey(tmp_path / "x.tif"))[0].tolist() == expected


@pytest.mark.parametrize("floats", [[0.0, np.nan], [0.0, np.inf], [-120.0, 1.0], [0.0, 3000.0]])
def test_floats_beyond_both_are_refused(tmp_path: Path, floats: list[float]) -> None:
    Image.fromarray(np.array([floats], np.float32)).save(tmp_path / "x.tif")
    for read in (read_rgb, check_readable):
        with pytest.raises(BrokenImage, match=r"floats are from 0 to 1 or from 0 to 255, .* from "):
            read(tmp_path / "x.tif")


@pytest.mark.parametrize(
    ("mode", "name", "slack"),
    [("L", "x.png", 0), ("P", "x.png", 0), ("CMYK", "x.jpg", 8), ("RGBA", "x.png", 0),
     ("1", "x.png", 0), ("LA", "x.png", 0), ("CMYK", "x.tif", 0)],
)  # fmt: skip
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str, name: str, slack: int) -> None:
    Image.fromarray(UPRIGHT).resize((48, 32), 0).convert(mode).save(tmp_path / name)
    found = np.asarray(read_rgb(tmp_path / name).resize((6, 4), 0)).astype(int)
    assert np.abs(found - UPRIGHT).max() <= slack


@pytest.mark.parametrize("suffix", ["gif", "tif", "webp"])
def test_of_several_frames_the_first_one_is_read(tmp_path: Path, suffix: str) -> None:
    first, *others = (Image.new("RGB", (8, 8), colour) for colour in ("red", "lime", "blue"))
    first.save(tmp_path / f"x.{suffix}", save_all=True, append_images=others, lossless=True)
    assert np.unique(pixels(tmp_path / f"x.{suffix}")[..., 0]).tolist() == [255]


def test_fitted_covers_and_cuts_to_the_centre() -> None:
    wide = np.zeros((8, 24, 3), np.uint8)
    wide[:, 8:16] = 200
    assert np.unique(fitted(Image.fromarray(wide), (8, 8))).tolist() == [200]


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


Reader = Callable[[Path], object]
NOT_READABLE: dict[str, Reader] = {
    "a text": lambda path: path.write_text("hello"),
    "empty": lambda path: path.touch(),
    "a pipe": make_fifo,
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("gone.png"),
    "a folder": lambda path: path.mkdir(),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "PostScript": lambda path: path.write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n"
    ),
    "2.5 billion pixels": lambda path: path.write_bytes(b"P6 50000 50000 255\n"),
    "too large to count": lambda path: path.write_bytes(b"P6 99999999999 9 255\n"),
}


@pytest.mark.parametrize("kind", NOT_READABLE)
@pytest.mark.parametrize("read", [read_rgb, check_readable])
def test_what_is_no_image_is_one_line(
    tmp_path: Path, kind: str, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "x.png"
    NOT_READABLE[kind](path)
    with pytest.raises(BrokenImage) as caught:
        read(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: not a readable image (")
    assert "\n" not in line
    assert len(line) < 400


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp", "tif"])
def test_a_torn_file_is_found_by_the_check(tmp_path: Path, suffix: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(noise).save(path)
    check_readable(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for read in (check_readable, read_rgb):
        with pytest.raises(BrokenImage):
            read(path)


def odd_exif() -> bytes:
    """To be turned by 90 degrees, and a number is stored as text: Pillow cannot write it again."""
    entries = ((0x0112, 3, b"\6\0\0\0"), (0x0128, 2, b"a\0\0\0"))
    packed = [struct.pack("<HHI4s", tag, kind, 1, value) for tag, kind, value in entries]
    return b"Exif\0\0II*\0\x08\0\0\0\2\0" + b"".join(packed) + bytes(4)


def test_an_image_whose_exif_cannot_be_written_again_is_turned(tmp_path: Path) -> None:
    stored = Image.fromarray(UPRIGHT).rotate(90, expand=True)
    stored.save(tmp_path / "x.png", exif=odd_exif())
    check_readable(tmp_path / "x.png")
    assert np.array_equal(pixels(tmp_path / "x.png"), UPRIGHT)


def test_an_image_whose_exif_cannot_be_read_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Image.Image) -> Image.Exif:
        raise SyntaxError("not a TIFF file")

    Image.fromarray(UPRIGHT).save(tmp_path / "x.png")
    monkeypatch.setattr(Image.Image, "getexif", fails)
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.getexif", fails)
    assert np.array_equal(pixels(tmp_path / "x.png"), UPRIGHT)


def test_a_broken_image_goes_to_another_process() -> None:
    found = pickle.loads(pickle.dumps(BrokenImage(Path("x.png"), "torn")))
    assert (found.path, found.reason) == (Path("x.png"), "torn")
    assert str(found) == "x.png: not a readable image (torn)"


def test_what_is_skipped_is_counted_and_named() -> None:
    assert skipped_text([]) == []
    assert skipped_text(["a: torn"]) == ["1 image is skipped: a: torn"]
    four = skipped_text(["a: torn", "b: torn", "c: torn", "d: torn"])
    assert four == ["4 images are skipped: a: torn; b: torn; c: torn; and 1 more"]


def test_a_large_image_is_read_without_a_warning(tmp_path: Path) -> None:
    Image.new("1", (13_000, 8_000)).save(tmp_path / "large.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with without_warnings():
            check_readable(tmp_path / "large.png")
