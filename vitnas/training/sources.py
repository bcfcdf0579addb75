"""Reading the image files of each known data set, and saying which file is missing or damaged.

Only formats without code in them: idx, CIFAR's binary version and image files. CIFAR's Python
version is a pickle and is not read.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from vitnas.config.training import DataConfig, class_names
from vitnas.errors import DataError

ImageHW = tuple[int, int]
Labelled = tuple[Tensor, Tensor]
"""Images (n, C, H, W) uint8 and their classes (n,) int64."""

_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"}
_DIGITS_TEST_SEED = 20260101  # fixed: the test digits are the same in every run
_CHUNK = 1024


@dataclass(frozen=True)
class Source:
    """A data set as its files hold it.

    Attributes:
        train: every training image, the ones that will score candidates included.
        test: the test images, or None where there are none.
        classes: the classes' names, in the order of their numbers.
    """

    train: Labelled
    test: Labelled | None
    classes: tuple[str, ...]


def read_source(config: DataConfig, image_hw: ImageHW) -> Source:
    """Read the data set that `config` names, resized to `image_hw` = (H, W) pixels.

    Raises:
        DataError: a file or folder is missing, unreadable, damaged or empty; names the path, what
            was expected there and how to get it.
    """
    return _READERS[config.name](config, image_hw)


def split_by_class(labels: Tensor, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Cut the same share out of each class.

    Args:
        labels: (n,) int64 on the CPU.
        fraction: share that is cut out, 0 to 1, rounded in each class to whole images.
        seed: of the draw; global random state is neither read nor changed.

    Returns:
        Indices that stay and indices that are cut out, both sorted.
    """
    generator = torch.Generator().manual_seed(seed)
    stay, cut = [torch.empty(0, dtype=torch.int64)], [torch.empty(0, dtype=torch.int64)]
    for label in torch.unique(labels):
        members = (labels == label).nonzero().squeeze(1)
        members = members[torch.randperm(len(members), generator=generator)]
        number = round(len(members) * fraction)
        cut.append(members[:number])
        stay.append(members[number:])
    return torch.cat(stay).sort().values, torch.cat(cut).sort().values


def _read_digits(config: DataConfig, image_hw: ImageHW) -> Source:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = np.round(np.asarray(bunch.images) * (255 / 16)).astype(np.uint8)
    images = _resize(config, torch.from_numpy(pixels)[:, None], image_hw)
    labels = torch.from_numpy(np.asarray(bunch.target, dtype=np.int64))
    train, test = split_by_class(labels, 0.2, _DIGITS_TEST_SEED)
    names = tuple(str(digit) for digit in range(10))
    return Source((images[train], labels[train]), (images[test], labels[test]), names)


def _read_fashion(config: DataConfig, image_hw: ImageHW) -> Source:
    root = _folder(config)
    names = "t-shirt trouser pullover dress coat sandal shirt sneaker bag ankle-boot"

    def pair(part: str) -> Labelled:
        images = _read_idx(config, root / f"{part}-images-idx3-ubyte", 3)
        labels = _read_idx(config, root / f"{part}-labels-idx1-ubyte", 1)
        pixels = _resize(config, torch.from_numpy(images)[:, None], image_hw)
        return _checked(config, root, (pixels, torch.from_numpy(labels.astype(np.int64))))

    return Source(pair("train"), pair("t10k"), tuple(names.split()))


def _read_idx(config: DataConfig, path: Path, dims: int) -> npt.NDArray[np.uint8]:
    """An idx file of unsigned bytes with `dims` axes, plain or as `.gz`."""
    packed = path.with_name(path.name + ".gz")
    if not path.is_file() and packed.is_file():
        path = packed
    content = _read_bytes(config, path)
    header = 4 + 4 * dims
    if len(content) < header or content[:4] != bytes((0, 0, 8, dims)):
        _damaged(config, path, f"not an idx file of unsigned bytes with {dims} axes")
    shape = np.frombuffer(content, dtype=">u4", count=dims, offset=4).astype(np.int64)
    if len(content) - header != int(np.prod(shape, dtype=object)):
        sizes = " x ".join(map(str, shape))
        _damaged(
            config, path, f"its header says {sizes} bytes and it holds {len(content) - header}"
        )
    pixels = np.frombuffer(content, dtype=np.uint8, offset=header)
    return np.array(pixels.reshape(tuple(shape)))


def _read_cifar(config: DataConfig, image_hw: ImageHW) -> Source:
    root = _folder(config)
    if config.name == "cifar10":
        parts, test = [f"data_batch_{number}.bin" for number in range(1, 6)], "test_batch.bin"
        label_bytes, meta = 1, "batches.meta.txt"
    else:
        parts, test, label_bytes, meta = ["train.bin"], "test.bin", 2, "fine_label_names.txt"

    def pair(files: Sequence[str]) -> Labelled:
        read = [_read_records(config, root / name, label_bytes) for name in files]
        images, labels = (torch.cat(columns) for columns in zip(*read, strict=True))
        return _checked(config, root, (_resize(config, images, image_hw), labels))

    train = pair(parts)
    return Source(train, pair([test]), _cifar_names(root / meta, config))


def _read_records(config: DataConfig, path: Path, label_bytes: int) -> Labelled:
    """Records of `label_bytes` label bytes (the last one counts) and 3 x 32 x 32 pixels."""
    content, size = _read_bytes(config, path), label_bytes + 3072
    if not content or len(content) % size:
        _damaged(config, path, f"{len(content)} bytes are not whole records of {size}")
    records = torch.from_numpy(np.frombuffer(content, dtype=np.uint8).reshape(-1, size).copy())
    return records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label_bytes - 1].long()


def _cifar_names(path: Path, config: DataConfig) -> tuple[str, ...]:
    """The names in the archive's text file, or numbers where that is missing."""
    number = config.facts.num_classes or 0
    try:
        names = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        names = []
    return tuple(names) if len(names) == number else tuple(map(str, range(number)))


def _read_folder(config: DataConfig, image_hw: ImageHW) -> Source:
    folder = list_folder(config)
    listed = [files for files in (folder.train, folder.held) if files]
    assert config.folder is not None
    _check_memory(config.folder, sum(map(len, listed)), 3, image_hw)
    first, *rest = [read_files(config, files, image_hw) for files in listed]
    return Source(first, rest[0] if rest else None, folder.classes)


@dataclass(frozen=True)
class Folder:
    """Paths of an image folder, each with the number of its class.

    Attributes:
        classes: names of the classes, in the order of their numbers.
        train: what is below `train/`.
        held: what is below `test/` or `val/`; empty where there is neither.
    """

    classes: tuple[str, ...]
    train: list[tuple[Path, int]]
    held: list[tuple[Path, int]]


def list_folder(config: DataConfig) -> Folder:
    """List the images of an `imagefolder`, opening none of them; raises as `read_source`."""
    root = _folder(config)
    train = root / "train"
    if not _is_folder(train):
        _damaged(config, train, "no such folder")
    classes = class_names(train)
    if len(classes) < 2:
        _damaged(config, train, f"{len(classes)} class folders, and two are needed")
    held = next((root / name for name in ("test", "val") if _is_folder(root / name)), None)
    if held is not None and (strange := sorted(set(class_names(held)) - set(classes))):
        _damaged(config, held, f"class '{strange[0]}' is not in {train}")
    found = [_list_images(config, part, classes) for part in (train, held) if part is not None]
    return Folder(classes, found[0], found[1] if len(found) > 1 else [])


def _list_images(
    config: DataConfig, folder: Path, classes: Sequence[str]
) -> list[tuple[Path, int]]:
    """Every image below a class folder with its class, sorted by path."""
    files = [
        (path, number)
        for number, name in enumerate(classes)
        for path in sorted(folder.joinpath(name).rglob("*"))
        if path.suffix.lower() in _IMAGE_SUFFIXES
    ]
    if not files:
        _damaged(config, folder, "no image in it")
    return files


def read_files(
    config: DataConfig, files: Sequence[tuple[Path, int]], image_hw: ImageHW
) -> Labelled:
    """Image files, scaled to cover `image_hw` = (H, W) pixels and cut to it; raises `DataError`."""
    images = torch.empty(len(files), 3, *image_hw, dtype=torch.uint8)
    for index, (path, _) in enumerate(files):
        images[index] = read_image(config, path, image_hw)
    return images, torch.tensor([number for _, number in files])


def read_image(
    config: DataConfig,
    path: Path,
    image_hw: ImageHW,
    augmentation: Callable[[Any], Any] | None = None,
) -> Tensor:
    """One image as (3, H, W) uint8: scaled to cover, then its centre; or as `augmentation` likes.

    Args:
        augmentation: a PIL image in RGB -> an array (3, H, W) uint8.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as image:
            whole = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        _damaged(config, path, f"not a readable image ({error})")
    if augmentation is not None:
        return torch.as_tensor(augmentation(whole))
    fitted = ImageOps.fit(whole, (image_hw[1], image_hw[0]), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(fitted)).permute(2, 0, 1)


def _check_memory(root: Path, number: int, channels: int, image_hw: ImageHW) -> None:
    """Refuse what would end in the kernel's hands; splitting holds the images twice for a while."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration, ValueError):
        return
    needed = 2 * number * channels * image_hw[0] * image_hw[1]
    if needed > free:
        raise DataError(
            f"{root}: {number:,} images take {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB "
            "are free; take a smaller img_size or fewer images"
        )


def _resize(config: DataConfig, images: Tensor, image_hw: ImageHW) -> Tensor:
    """(n, C, h, w) uint8 -> (n, C, H, W) uint8, bilinear with antialiasing, in slices."""
    if tuple(images.shape[-2:]) == image_hw or not len(images):
        return images
    _check_memory(config.folder or Path(config.name), len(images), images.shape[1], image_hw)
    resized = torch.empty(*images.shape[:2], *image_hw, dtype=torch.uint8)
    for part, place in zip(*(torch.split(x, _CHUNK) for x in (images, resized)), strict=True):
        place.copy_(
            interpolate(
                part.float(), image_hw, mode="bilinear", antialias=True, align_corners=False
            ).round_()
        )
    return resized


def _folder(config: DataConfig) -> Path:
    root = config.folder
    assert root is not None  # only digits has none
    if not _is_folder(root):
        _damaged(config, root, "no such folder")
    return root


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a folder above it may not be entered
        return False


def _read_bytes(config: DataConfig, path: Path) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except FileNotFoundError:
        _damaged(config, path, "no such file")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        _damaged(config, path, f"cannot be read ({reason})")


def _checked(config: DataConfig, root: Path, pair: Labelled) -> Labelled:
    images, labels = pair
    if len(images) != len(labels) or not len(images):
        _damaged(config, root, f"{len(images)} images and {len(labels)} labels")
    largest = int(labels.max())
    if largest >= (config.facts.num_classes or 0):
        _damaged(config, root, f"label {largest} where the largest is {config.facts.num_classes}")
    return pair


def _damaged(config: DataConfig, path: Path, problem: str) -> NoReturn:
    raise DataError(f"{path}: {problem}; {config.name}: {config.facts.source}")


_READERS: dict[str, Callable[[DataConfig, ImageHW], Source]] = {
    "digits": _read_digits,
    "fashion_mnist": _read_fashion,
    "cifar10": _read_cifar,
    "cifar100": _read_cifar,
    "imagefolder": _read_folder,
}
