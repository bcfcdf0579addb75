"""Images of `wds/`, `hfids/` and `tfds/`, which timm's readers give one after the other. A reader
that decodes ends at the first broken image, or leaves it out without a word, so it gives the files,
and they are decoded here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from io import BytesIO
from itertools import islice
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from torch.utils.data import IterableDataset

from vitnas.cores import cores
from vitnas.data.build import SAMPLE
from vitnas.data.decode import BrokenImage, as_rgb, conversions, read_rgb, turned_as

_AHEAD = 4  # images that are decoded at once, for each core
_PIXEL = b"P6 1 1 255\n\0\0\0"
"""The smallest image."""
_Pair = tuple[Image.Image, Any]


class Undecoded(NamedTuple):
    """A reader that gives files.

    Attributes:
        reader: gives items, each with a file and what tells its class.
        decode: from an item to an upright RGB image and its class; None where the data leave it
            out.
        file: the bytes of an item's image file; None where they are not there.
        name: what an item is called; `item 7` in place of an empty name.
        mistakes: errors of `decode` that are the user's, not the image's.
    """

    reader: Iterable[Any]
    decode: Callable[[Any], _Pair | None]
    file: Callable[[Any], bytes | None]
    name: Callable[[Any], str] = lambda item: ""
    mistakes: tuple[type[Exception], ...] = ()


class Stream(IterableDataset[Any]):
    """A split of `wds/`, `hfids/` or `tfds/`: pairs of an upright RGB image and its class, in their
    order.

    An image that cannot be read comes as a `BrokenImage`, which names it. Images are decoded by all
    cores.

    Args:
        data: timm's data set; its reader may be changed at the first reading.
        name: of the data, for errors.
        undecoded: one of `UNDECODED`, for this reader.

    Attributes:
        reader: timm's.
        kinds: what the first `SAMPLE` images of the last reading are that is converted; see
            `vitnas.data.decode.conversions`.
    """

    def __init__(self, data: Any, name: str, undecoded: Callable[[Any], Undecoded | None]) -> None:
        self.reader, self._data, self._name = data.reader, data, name
        self._undecoded = undecoded
        self._files: Undecoded | None = None
        self.classes: tuple[str, ...] = getattr(data, "classes", ())
        self.kinds: list[tuple[str, ...]] = []

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[_Pair | BrokenImage]:
        files = self._files = self._files or self._undecoded(self.reader)
        self.kinds = []
        if files is None:
            yield from self._data
            return
        numbered = enumerate(files.reader)
        with ThreadPool(cores()) as pool:
            while wave := list(islice(numbered, _AHEAD * cores())):
                self.kinds += [_kinds(files, item) for _, item in wave[: SAMPLE - len(self.kinds)]]
                found = pool.map(lambda each: self._image(files, *each), wave, chunksize=1)
                yield from (image for image in found if image is not None)

    def _image(self, files: Undecoded, number: int, item: Any) -> _Pair | BrokenImage | None:
        try:
            return files.decode(item)
        except files.mistakes:
            raise
        except Exception as error:  # whatever the package raises
            reason = error.reason if isinstance(error, BrokenImage) else str(error)
            text = re.sub(r" <[^>]* at 0x\w+>", "", reason).strip()  # Pillow names its object
            name = files.name(item) or f"item {number}"
            line = (text.splitlines() or [type(error).__name__])[0][:200]
            return BrokenImage(Path(f"{self._name}: {name}"), line)


def _kinds(files: Undecoded, item: Any) -> tuple[str, ...]:
    content = files.file(item)
    return () if content is None else conversions(Path(), BytesIO(content))


def of_webdataset(reader: Any) -> Undecoded:
    """That of `wds/`. timm's own pipeline leaves out what it cannot decode."""
    webdataset: Any = import_module("webdataset")
    theirs: Any = import_module("timm.data.readers.reader_wds")
    names = [f"{reader.root}/{name}" for name in reader.split_info.filenames]
    samples = webdataset.DataPipeline(
        webdataset.SimpleShardList(names),
        webdataset.tarfile_to_samples(handler=theirs.log_and_continue),
    )

    def file(sample: Any, *, is_needed: bool = False) -> bytes | None:
        getfirst = webdataset.filters.getfirst
        found: bytes | None = getfirst(sample, reader.input_key, missing_is_error=is_needed)
        return found

    def name(sample: Any) -> str:
        return f"{Path(sample['__url__']).name}: {sample['__key__']}"

    def decode(sample: Any) -> _Pair | None:
        told = theirs._decode(
            {**sample, "jpg": _PIXEL},  # only the class is asked for
            target_key=reader.target_keys or reader.target_key,
            alt_label=reader.split_info.alt_label,
        )
        if told is None:
            return None
        return read_rgb(Path(), BytesIO(file(sample, is_needed=True) or b"")), told["target"]

    mistakes = (TypeError, theirs.WdsTargetKeyError)  # those at which timm's pipeline stops
    return Undecoded(samples, decode, file, name, mistakes)


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

    def decode(pair: Any) -> _Pair:
        return as_rgb(feature.decode_example(pair[0])), pair[1]

    return Undecoded(reader, decode, lambda pair: (pair[0] or {}).get("bytes"))


def of_tensorflow(reader: Any) -> Undecoded | None:
    """That of `tfds/`, which decodes as timm's does, and turns images as their EXIF says."""
    tensorflow: Any = import_module("tensorflow")
    skip = import_module("tensorflow_datasets").decode.SkipDecoding()
    decoders = reader._input_decoders()
    reader._input_decoders = lambda: _each_leaf(decoders, skip)
    reader.input_img_mode = ""
    reader.ds = None

    def decode(pair: Any) -> _Pair:
        file, label = pair
        pixels = tensorflow.image.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")
        return turned_as(BytesIO(file), Image.fromarray(pixels.numpy())), label

    return Undecoded(reader, decode, lambda pair: pair[0])


UNDECODED: dict[str, Callable[[Any], Undecoded | None]] = {
    "hfids": of_datasets,
    "tfds": of_tensorflow,
    "wds": of_webdataset,
}
"""By what stands before the first `/` of timm's name."""


def _each_leaf(tree: Any, leaf: Any) -> Any:
    """A tree of the same branches."""
    if not isinstance(tree, dict):
        return leaf
    return {name: _each_leaf(branch, leaf) for name, branch in tree.items()}
