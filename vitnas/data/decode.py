"""From the bytes of an image file to pixels, without torch; anything wrong is one line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from vitnas.errors import DataError
from vitnas.files import open_file
from vitnas.words import plural

Image.init()  # the formats that Pillow was built with
_FORMATS = Image.OPEN.keys() & {"BMP", "GIF", "JPEG", "MPO", "PNG", "PPM", "TIFF", "WEBP"}
"""What is read, whatever a file's name ends in. Pillow knows more, some with code in them (EPS)."""

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""By EXIF orientation."""

_KINDS = {
    "1": "black and white",
    "L": "grey",
    "LA": "grey",
    "P": "of a palette",
    "PA": "of a palette",
    "CMYK": "CMYK",
    "F": "floats",
}
"""By Pillow's mode, what is no RGB."""

MOST_BROKEN = 0.01
"""Share of the images that may be broken."""
_NAMED = 3


class BrokenImage(DataError):
    """An image file that cannot be read.

    Attributes:
        path: the file.
        reason: why, in a few words.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: not a readable image ({reason})")

    def __reduce__(self) -> tuple[Any, ...]:
        return BrokenImage, (self.path, self.reason)


def named(broken: Sequence[BrokenImage | str]) -> str:
    """The first of them, and how many more there are."""
    more = f"; and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
    return "; ".join(map(str, broken[:_NAMED])) + more


def skipped_text(skipped: Sequence[BrokenImage | str]) -> list[str]:
    """A line on the images that could not be read, if there are any."""
    count = plural(len(skipped), "image") + (" is" if len(skipped) == 1 else " are")
    return [f"{count} skipped: {named(skipped)}"] if skipped else []


def refuse_many(broken: Sequence[BrokenImage | str], number: int) -> None:
    """Refuse `number` images of which too many are broken.

    Raises:
        DataError: names them.
    """
    if len(broken) > MOST_BROKEN * number:
        share = f"{len(broken)} of {number:,} images cannot be read, more than {MOST_BROKEN:.0%}"
        raise DataError(f"{named(broken)}: {share}")


def read_rgb(path: Path, file: BinaryIO | None = None) -> Image.Image:
    """The image upright (by its EXIF orientation), in RGB of 8 bits.

    Args:
        path: its file.
        file: the file where it is open already, as a part of an archive is; it is closed.

    Raises:
        BrokenImage: it cannot be read, or has more than 179 million pixels (Pillow's bound).
    """
    with _opened(path, file) as image:
        return as_rgb(_upright(image))


def read_grey(path: Path) -> Image.Image:
    """As `read_rgb`, in grey of 8 bits."""
    with _opened(path) as image:
        return _in_8_bits(_upright(image)).convert("L")


def read_whole(path: Path, file: BinaryIO) -> bytes:
    """All bytes of an open file; raises `BrokenImage`."""
    try:
        return file.read()
    except Exception as error:  # an archive's own, too
        raise _broken(path, error) from None


def check_readable(path: Path) -> None:
    """Read the whole file as `read_rgb` does, a JPEG at a fraction of its size; raises
    `BrokenImage`."""
    with _opened(path) as image:
        image.draft("RGB", (1, 1))
        as_rgb(_upright(image))


def conversions(path: Path, file: BinaryIO | None = None) -> tuple[str, ...]:
    """What an image file is that `read_rgb` changes, in words: `grey`, `turned by EXIF`; empty for
    RGB, and for a broken one. Only the head of the file is read. Arguments: as of `read_rgb`."""
    try:
        with _opened(path, file) as image:
            return _conversions(image)
    except BrokenImage:
        return ()


def _conversions(image: Image.Image) -> tuple[str, ...]:
    is_deep = image.mode.startswith("I")
    kind = "grey of 16 bits" if is_deep else _KINDS.get(image.mode, "")
    is_clear = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    found = [kind, "transparent" if is_clear else ""]
    if _turn_of(image) is not None:
        found.append("turned by EXIF")
    return tuple(filter(None, found))


def as_rgb(image: Image.Image) -> Image.Image:
    """`image` in RGB of 8 bits; grey of 16 bits and floats are scaled."""
    return _in_8_bits(image).convert("RGB")


def as_grey_or_rgb(image: Image.Image) -> Image.Image:
    """`image` in 8 bits: grey where it is black, white or grey, else RGB."""
    flat = _in_8_bits(image)
    return flat.convert("L" if flat.mode in ("1", "L") else "RGB")


def fitted(
    image: Image.Image,
    image_hw: tuple[int, int],
    by: Image.Resampling = Image.Resampling.BICUBIC,
    border: float = 0.0,
) -> npt.NDArray[np.uint8]:
    """(C, H, W) uint8: scaled to cover `image_hw` = (H, W) pixels, then cut to its centre.

    Args:
        border: share of the image's sides that is cut off at each end.
    """
    return planes(ImageOps.fit(image, (image_hw[1], image_hw[0]), by, border))


def planes(image: Image.Image) -> npt.NDArray[np.uint8]:
    """(C, H, W) uint8 of an image in 8 bits."""
    pixels = np.array(image, dtype=np.uint8)
    flat: npt.NDArray[np.uint8] = pixels if pixels.ndim == 3 else pixels[:, :, None]
    found: npt.NDArray[np.uint8] = flat.transpose(2, 0, 1)
    return found


@contextmanager
def without_warnings() -> Iterator[None]:
    """Inside, Pillow does not warn about files that it can read. Use it around all reading threads,
    not inside one: warning filters belong to the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _opened(path: Path, given: BinaryIO | None = None) -> Iterator[Image.Image]:
    """The image. Any error is the file's: it may hold anything, and each decoder has its own."""
    try:
        with given or open_file(path) as file, Image.open(file, formats=list(_FORMATS)) as image:
            yield image
    except UnidentifiedImageError:
        raise BrokenImage(path, "its format is not known") from None
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> BrokenImage:
    reason: Any = getattr(error, "strerror", None) or error
    return BrokenImage(path, str(reason) or type(error).__name__)


def _upright(image: Image.Image) -> Image.Image:
    """`image` turned as its EXIF says; as it is where that cannot be read.

    `ImageOps.exif_transpose` also writes the EXIF anew, and fails where Pillow cannot.
    """
    image.load()
    turn = _turn_of(image)
    return image if turn is None else image.transpose(turn)


def turned_as(file: BinaryIO, image: Image.Image) -> Image.Image:
    """`image`, which another decoder has made of `file`, turned as the EXIF of the file says."""
    try:
        with _opened(Path(), file) as opened:
            turn = _turn_of(opened)
    except BrokenImage:  # of a format that is not ours
        return image
    return image if turn is None else image.transpose(turn)


def _turn_of(image: Image.Image) -> Image.Transpose | None:
    """How its EXIF says that an image is turned; None where it is not, or that cannot be read."""
    try:
        return _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # it may hold anything
        return None


def _in_8_bits(image: Image.Image) -> Image.Image:
    """Pillow clips grey of 16 bits to white, and cuts floats to whole numbers."""
    values: npt.NDArray[np.floating[Any]]
    if image.mode.startswith("I"):
        values = np.asarray(image).astype(np.float32).clip(0, 65535) / 257
    elif image.mode == "F":
        values = _scaled(np.asarray(image))
    else:
        return image
    return Image.fromarray(values.round().astype(np.uint8))


def _scaled(floats: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Floats from 0 to 1, or from 0 to 255 where one is above 2, as 0 to 255. Resampling may have
    left the range by as much as its length; what is outside is cut off.

    Raises:
        ValueError: they are farther outside, or not finite.
    """
    low, high = float(floats.min()), float(floats.max())
    top = 1.0 if high <= 2.0 else 255.0
    if not -top <= low <= high <= 2 * top:
        rule = "floats are from 0 to 1 or from 0 to 255, and these from"
        raise ValueError(f"{rule} {low:g} to {high:g}")
    scaled: npt.NDArray[np.float32] = (floats * np.float32(255 / top)).clip(0, 255)
    return scaled
