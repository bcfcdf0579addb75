"""Images of `hfids/` and `tfds/`, which timm's readers give one after the other. A reader that
decodes ends at the first broken image, so it gives the files, and they are decoded here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import islice
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from torch.utils.data import IterableDataset

from vitnas.cores import cores
from vitnas.data.decode import BrokenImage

_AHEAD = 4  # images that are decoded at once, for each core


class Undecoded(NamedTuple):
    """A reader that gives files.

    Attributes:
        reader: gives pairs of a file and a class.
        decode: from a file to an RGB image.
    """

    reader: Iterable[tuple[Any, Any]]
    decode: Callable[[Any], Image.Image]


class Stream(IterableDataset[Any]):
    """A split of `hfids/` or `tfds/`: pairs of an RGB image and its class, in their order.

    An image that cannot be read comes as a `BrokenImage`, which says its number. Images are
    decoded by all cores, as the reader's package decodes them.

    Args:
        data: timm's data set; its reader is changed at the first reading.
        name: of the data, for errors.
        undecoded: one of `UNDECODED`, for this reader.

    Attributes:
        reader: timm's.
    """

    def __init__(self, data: Any, name: str, undecoded: Callable[[Any], Undecoded | None]) -> None:
        self.reader, self._data, self._name = data.reader, data, name
        self._undecoded = undecoded
        self._files: Undecoded | None = None
        self.classes: tuple[str, ...] = getattr(data, "classes", ())

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[tuple[Image.Image, Any] | BrokenImage]:
        files = self._files = self._files or self._undecoded(self.reader)
        if files is None:
            yield from self._data
            return
        numbered = enumerate(files.reader)
        with ThreadPool(cores()) as pool:
            while wave := list(islice(numbered, _AHEAD * cores())):
                yield from pool.map(lambda each: self._image(files, *each), wave, chunksize=1)

    def _image(
        self, files: Undecoded, number: int, item: tuple[Any, Any]
    ) -> tuple[Image.Image, Any] | BrokenImage:
        file, label = item
        try:
            return files.decode(file), label
        except Exception as error:  # whatever the package raises
            text = re.sub(r" <[^>]* at 0x\w+>", "", str(error)).strip()  # Pillow names its object
            reason = (text.splitlines() or [type(error).__name__])[0][:200]
            return BrokenImage(Path(f"{self._name}: item {number}"), reason)


def of_datasets(reader: Any) -> Undecoded | None:
    """That of `hfids/`; None if its column does not say that it has images."""
    feature_of_images: Any = import_module("datasets").Image
    if reader.ds is None:
        reader._lazy_init()
    feature = (reader.ds.features or {}).get(reader.input_key)
    if not isinstance(feature, feature_of_images):
        return None
    reader.ds = reader.ds.cast_column(reader.input_key, feature_of_images(decode=False))
    reader.input_img_mode = ""  # files have none
    return Undecoded(reader, lambda file: feature.decode_example(file).convert("RGB"))


def of_tensorflow(reader: Any) -> Undecoded | None:
    """That of `tfds/`, which decodes as timm's does."""
    tensorflow: Any = import_module("tensorflow")
    skip = import_module("tensorflow_datasets").decode.SkipDecoding()
    decoders = reader._input_decoders()
    reader._input_decoders = lambda: _each_leaf(decoders, skip)
    reader.input_img_mode = ""
    reader.ds = None

    def decode(file: bytes) -> Image.Image:
        pixels = tensorflow.image.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")
        return Image.fromarray(pixels.numpy())

    return Undecoded(reader, decode)


UNDECODED: dict[str, Callable[[Any], Undecoded | None]] = {
    "hfids": of_datasets,
    "tfds": of_tensorflow,
}
"""By what stands before the first `/` of timm's name."""


def _each_leaf(tree: Any, leaf: Any) -> Any:
    """A tree of the same branches."""
    if not isinstance(tree, dict):
        return leaf
    return {name: _each_leaf(branch, leaf) for name, branch in tree.items()}
