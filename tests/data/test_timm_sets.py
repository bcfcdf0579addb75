"""Data sets that timm opens: real files that a test writes, and one line for what is wrong."""

from __future__ import annotations

import io
import logging
import pickle
import tarfile
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.training.conftest import write_idx
from vitnas.config.data import DataConfig
from vitnas.config.data_checks import check_data_there
from vitnas.config.files import validate
from vitnas.data.foreign import describe
from vitnas.data.rows import Rows
from vitnas.data.table import read_source
from vitnas.data.telling import Teller
from vitnas.errors import ConfigError, VitnasError

COLOURS = {"blue": (0, 0, 255), "green": (0, 255, 0), "red": (255, 0, 0)}


def png(colour: tuple[int, int, int], side: int = 12) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side + 2), colour).save(file, "PNG")
    return file.getvalue()


def write_tar(path: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


HUB_CARD = """---
dataset_info:
  features:
  - {name: image, dtype: image}
  - {name: label, dtype: {class_label: {names: {'0': blue, '1': green, '2': red}}}}
  splits:
  - {name: train, num_examples: 12}
  - {name: test, num_examples: 6}
configs:
- config_name: default
  data_files:
  - {split: train, path: train-*}
  - {split: test, path: test-*}
---
"""


def by_class(number: int, *names: str) -> dict[str, bytes]:
    return {f"{name}/{index}.png": png(COLOURS[name]) for name in names for index in range(number)}


def timm(root: Path | None, **changes: Any) -> DataConfig:
    return validate(
        DataConfig, {"name": "timm", "root": None if root is None else str(root), **changes}
    )


def said(config: DataConfig) -> str:
    with pytest.raises(VitnasError) as caught:
        read_source(config, (8, 8))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def odd(kind: str) -> bytes:
    """An image file of 8 x 12 pixels, the left half black and the right half white."""
    deep = np.zeros((8, 12), np.uint16)
    deep[:, 6:] = 65535
    file, exif = io.BytesIO(), Image.Exif()
    image = Image.fromarray(deep if kind == "deep" else (deep > 0).astype(np.uint8) * 255)
    if kind == "turned":
        exif[0x0112] = 6
        image = image.convert("RGB")
    image.save(file, "PNG", exif=exif)
    return file.getvalue()


def check_reads_upright(config: DataConfig, kind: str) -> None:
    """40 images of one kind of `odd` are told and read as those of folders."""
    notices = list[str]()
    source = read_source(config, (12, 12), teller=Teller(notices.append))
    told = {"grey": "grey", "deep": "grey of 16 bits", "turned": "turned by EXIF"}[kind]
    assert f"images that were looked at 32 are {told}; all are read upright" in notices[-1]
    image = source.train[0][:][0]
    image = image.transpose(1, 2) if kind == "turned" else image
    assert image[:, 6, 0].tolist() == [0, 0, 0]
    assert image[:, 6, 11].tolist() == [255, 255, 255]


def test_tar_files_are_read_with_the_classes_of_the_training_images(tmp_path: Path) -> None:
    write_tar(tmp_path / "train.tar", by_class(4, *COLOURS))
    write_tar(tmp_path / "val.tar", by_class(2, "green", "red"))
    config = timm(tmp_path)
    source = read_source(config, (8, 6))
    assert source.test is not None
    assert source.classes == ("blue", "green", "red")
    assert source.train[0].shape == (12, 3, 8, 6)
    assert sorted(source.train[1].tolist()) == [0] * 4 + [1] * 4 + [2] * 4
    assert sorted(source.test[1].tolist()) == [1, 1, 2, 2]
    for pixels, label in zip(source.train[0][:], source.train[1].tolist(), strict=True):
        assert pixels[:, 0, 0].tolist() == list(list(COLOURS.values())[label])
    assert source.fingerprint["num_images"] == 12
    assert describe(config) == (3, 3)


def test_a_user_s_level_of_timm_s_log_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_tar(tmp_path / "train.tar", by_class(4, *COLOURS))
    with caplog.at_level(logging.DEBUG, logger="timm"):
        read_source(timm(tmp_path), (8, 8))
        assert logging.getLogger("timm").level == logging.DEBUG


def test_one_tar_file_has_no_test_images(tmp_path: Path) -> None:
    """timm itself gives the training images again where it is asked for the others."""
    write_tar(tmp_path / "all.tar", by_class(3, *COLOURS))
    assert read_source(timm(tmp_path / "all.tar"), (8, 8)).test is None
    message = said(timm(tmp_path / "all.tar", splits=["train", "validation"]))
    assert message.endswith("there is no validation/ or validation.tar")


@pytest.mark.parametrize("name", [None, "torch/folder"])
def test_a_folder_of_classes(folder_root: Path, name: str | None) -> None:
    source = read_source(timm(folder_root, dataset=name), (8, 8))
    own = read_source(DataConfig(name="imagefolder", root=str(folder_root)), (8, 8))
    assert source.test is not None
    assert own.test is not None
    assert source.classes == own.classes
    assert torch.equal(source.train[1], own.train[1])
    assert torch.equal(source.test[1], own.test[1])


@pytest.mark.parametrize("kind", ["tar files", "folders"])
def test_a_test_class_that_was_never_trained_is_refused(tmp_path: Path, kind: str) -> None:
    """timm itself drops its images, which would make the score too good."""
    for part, names in (("train", ("blue", "green")), ("val", ("green", "red"))):
        files = by_class(3, *names)
        if kind == "tar files":
            write_tar(tmp_path / f"{part}.tar", files)
            continue
        for name, content in files.items():
            (tmp_path / part / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / part / name).write_bytes(content)
    place = tmp_path / ("val.tar" if kind == "tar files" else "val")
    assert said(timm(tmp_path)) == (
        f"timm data set {tmp_path}: class 'red' of {place} is not among those that train"
    )


@pytest.mark.usefixtures("either_cache")
def test_no_image_of_another_class_is_read(tmp_path: Path) -> None:
    for part, number in (("train", 4), ("val", 2)):
        torn = dict.fromkeys(by_class(number, "green"), b"no image")
        write_tar(tmp_path / f"{part}.tar", by_class(number, "blue", "red") | torn)
    source = read_source(timm(tmp_path, classes=["red", "blue"]), (8, 8))
    assert source.test is not None
    assert (source.classes, source.skipped) == (("blue", "red"), ())
    assert source.fingerprint["num_images"] == len(source.train[0]) == 8
    for images, labels in (source.train, source.test):
        assert sorted(labels.tolist()) == [0] * (len(labels) // 2) + [1] * (len(labels) // 2)
        for pixels, label in zip(images[:], labels.tolist(), strict=True):
            assert pixels[:, 0, 0].tolist() == list(COLOURS["red" if label else "blue"])
    assert "4 of 12 images cannot be read" in said(timm(tmp_path))
    assert describe(timm(tmp_path, classes=["red", "blue"])) == (2, 3)
    mistake = said(timm(tmp_path, classes=["red", "pink"]))
    assert mistake.startswith("data.classes = 'pink': timm has no such class")
    write_tar(tmp_path / "val.tar", by_class(2, "green"))
    none = said(timm(tmp_path, classes=["red", "blue"]))
    assert none == f"timm data set {tmp_path}: split validation: has no image of these classes"


def test_one_class_is_refused(tmp_path: Path) -> None:
    write_tar(tmp_path / "all.tar", by_class(9, "red"))
    message = said(timm(tmp_path / "all.tar"))
    assert message == "data set timm: has training images of 1 class, and two are needed"


def test_a_broken_image_is_named_and_skipped_and_not_replaced(tmp_path: Path) -> None:
    files = by_class(40, *COLOURS)
    write_tar(tmp_path / "all.tar", {**files, "red/7.png": b"no image"})
    source = read_source(timm(tmp_path / "all.tar"), (8, 8))
    assert len(source.train[1]) == 119
    assert len(source.skipped) == 1
    assert "red/7.png: not a readable image" in source.skipped[0]
    write_tar(tmp_path / "all.tar", {**files, "red/7.png": b"no", "red/8.png": b"no"})
    assert "2 of 120 images cannot be read, more than 1%" in said(timm(tmp_path / "all.tar"))


def write_fashion(root: Path) -> np.ndarray:
    """Fashion-MNIST as torchvision keeps it, with the same 20 images twice; these images."""
    raw = root / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (20, 28, 28))
    for part in ("train", "t10k"):
        write_idx(raw / f"{part}-images-idx3-ubyte", images)
        write_idx(raw / f"{part}-labels-idx1-ubyte", np.arange(20) % 10)
    return images


def test_images_of_torchvision(tmp_path: Path) -> None:
    images = write_fashion(tmp_path)
    source = read_source(timm(tmp_path, dataset="torch/fashion_mnist"), (28, 28))
    assert source.test is not None
    assert source.classes[:2] == ("T-shirt/top", "Trouser")
    assert np.array_equal(source.train[0][:].numpy()[:, 0], images)
    some = timm(tmp_path, dataset="torch/fashion_mnist", classes=["Trouser", "Dress"])
    assert read_source(some, (28, 28)).train[1].tolist() == [0, 1, 0, 1]
    assert "download=True" in said(timm(tmp_path, dataset="torch/cifar10"))
    assert "Unknown torchvision dataset" in said(timm(tmp_path, dataset="torch/fashion"))


@pytest.mark.skipif(find_spec("datasets") is None, reason="needs datasets")
@pytest.mark.parametrize("prefix", ["hfds", "hfids"])
def test_images_of_datasets(tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow, parquet = map(import_module, ("pyarrow", "pyarrow.parquet"))
    root = tmp_path / "colours"
    root.mkdir()
    for split, number in (("train", 4), ("test", 2)):
        rows = [
            {"image": {"bytes": png(COLOURS[name]), "path": None}, "label": label}
            for _ in range(number)
            for label, name in enumerate(COLOURS)
        ]
        parquet.write_table(
            pyarrow.Table.from_pylist(rows), root / f"{split}-00000-of-00001.parquet"
        )
    (root / "README.md").write_text(HUB_CARD)
    config = timm(tmp_path / "theirs", dataset=f"{prefix}/{root}", splits=["train", "test"])
    for _ in range(2):
        source = read_source(config, (8, 8))
        assert source.test is not None
        assert isinstance(source.train[0], Rows), "kept"
        assert source.classes == ("blue", "green", "red")
        assert source.train[1].tolist() == [0, 1, 2] * 4
        assert len(source.test[1]) == 6
        for pixels, label in zip(source.train[0][:], source.train[1].tolist(), strict=True):
            assert pixels[:, 0, 0].tolist() == list(list(COLOURS.values())[label])
    some = read_source(config, (8, 8), lambda labels: torch.arange(3, len(labels)))
    assert isinstance(some.train[0], Rows)
    if prefix == "hfids":  # which can only be read from beginning to end
        assert some.train[0].places.tolist() == list(range(12))
    else:
        assert some.train[0].places.tolist() == [-1, -1, -1, *range(9)]
        assert describe(config) == (3, 3)


@pytest.mark.parametrize(
    ("prefix", "package"),
    [("wds", "webdataset"), ("hfds", "datasets"), ("TFDS", "tensorflow_datasets")],
)
def test_a_package_that_is_missing_is_named(tmp_path: Path, prefix: str, package: str) -> None:
    if find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    config = timm(tmp_path, dataset=f"{prefix}/x")
    assert said(config).endswith(f"needs the package {package}, which is not installed")
    with pytest.raises(ConfigError, match=f"^dataset = '{prefix}/x': needs the package {package}"):
        check_data_there(config)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"name": "digits", "dataset": "x"}, "dataset = 'x': is for name: timm"),
        ({"name": "timm"}, "root: is required: the folder or tar file"),
        ({"name": "timm", "dataset": "hdfs/x", "root": "."}, r"must begin with .*\(nearest: hfds/"),
        (
            {"name": "timm", "root": ".", "val_split": "val"},
            r"val_split = 'val': .*\(nearest: test",
        ),
        ({"name": "timm", "root": ".", "splits": ["a", "b", "c"]}, "splits"),
    ],
)
def test_what_cannot_be_is_refused(tree: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate(DataConfig, tree)


def test_a_class_map_that_is_a_pickle_is_not_looked_for(tmp_path: Path) -> None:
    """timm keeps a list of a large archive's files beside it, as a pickle; ours are never read."""

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("was loaded",))

    write_tar(tmp_path / "all.tar", by_class(3, *COLOURS))
    (tmp_path / "_all_tarinfos.pickle").write_bytes(pickle.dumps(Bomb()))
    assert len(read_source(timm(tmp_path / "all.tar"), (8, 8)).train[1]) == 9


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    assert "there is no train/ or train.tar" in said(timm(tmp_path / "gone"))
    assert "cannot be opened: RuntimeError: Found 0 images" in said(timm(tmp_path))
    (tmp_path / "all.tar").write_bytes(b"no archive")
    message = said(timm(tmp_path / "all.tar"))
    assert message.startswith(
        f"timm data set {tmp_path / 'all.tar'}: split train: cannot be opened"
    )
