"""Data sets of other packages in the cache: the same as in memory, and read once."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.data.sets import flip
from tests.data.test_timm_sets import COLOURS, by_class, png, timm, write_fashion, write_tar
from vitnas.config.data import DataConfig
from vitnas.data import build, kept, timm_sets
from vitnas.data.cache import held_sets, home
from vitnas.data.imageset import ImageSet
from vitnas.data.rows import Rows
from vitnas.data.shards import Shards
from vitnas.data.source import DataSource, everything
from vitnas.data.table import read_source
from vitnas.data.telling import Teller
from vitnas.training.data import load_data, used_images


@pytest.fixture
def tars(tmp_path: Path) -> DataConfig:
    files = {f"{name}/{n}.png": png((n, 9, 9 * n % 250)) for n in range(60) for name in COLOURS}
    write_tar(tmp_path / "train.tar", files | {"red/x.png": b"no image"})
    write_tar(tmp_path / "val.tar", by_class(2, "green", "red"))
    return timm(tmp_path)


def shades(number: int) -> dict[str, bytes]:
    """So many images of each of three classes, of which no two are alike."""
    return {
        f"{name}/{n}.png": png((n, 100 * place, 9 * n % 250))
        for place, name in enumerate(COLOURS)
        for n in range(number)
    }


def in_memory(config: DataConfig, monkeypatch: pytest.MonkeyPatch) -> DataSource:
    with monkeypatch.context() as patch:
        patch.setenv("VITNAS_IMAGE_CACHE", "off")
        return read_source(config, (8, 6))


def training_set() -> ImageSet:
    return max((held.images for held in held_sets(home())), key=lambda one: one.facts.number)


def inodes(images: ImageSet) -> list[int]:
    return [images.place(n).with_suffix(".npy").stat().st_ino for n in range(images.num_shards)]


def test_the_cache_gives_what_memory_gives(
    tars: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = in_memory(tars, monkeypatch)
    for source in (read_source(tars, (8, 6)) for _ in range(2)):
        assert source.test is not None
        assert memory.test is not None
        for found, expected in ((source.train, memory.train), (source.test, memory.test)):
            assert isinstance(found[0], Rows)
            assert isinstance(found[0].store, Shards)
            assert torch.equal(found[0][:], expected[0][:])
            assert torch.equal(found[1], expected[1])
        assert (source.classes, source.fingerprint) == (memory.classes, memory.fingerprint)
        assert source.skipped == memory.skipped
        assert "red/x.png: not a readable image" in source.skipped[0]


def test_mean_and_deviation_are_those_of_the_images_that_train_with_and_without_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tar(tmp_path / "all.tar", shades(40))
    cached = load_data(timm(tmp_path / "all.tar"), 8, fraction=0.2)
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
    memory = load_data(timm(tmp_path / "all.tar"), 8, fraction=0.2)
    assert (cached.mean, cached.std, cached.fraction) == (memory.mean, memory.std, 0.2)
    drawn = memory.train.subset(0.2, 0).x.double() / 255
    assert torch.tensor(memory.mean).double() == pytest.approx(drawn.mean(dim=(0, 2, 3)))


def test_each_share_is_a_set_of_its_own_that_is_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tar(tmp_path / "all.tar", shades(100))
    config, fractions = timm(tmp_path / "all.tar", val_fraction=0.1), (0.05, 1.0, 0.5)
    first = [load_data(config, 8, fraction) for fraction in fractions]
    numbers = sorted(held.images.facts.number for held in held_sets(home()))
    assert numbers == [30 + 12, 30 + 135, 300], "30 images score"
    with monkeypatch.context() as patch:
        patch.setattr(kept, "write_shard", lambda *_, **__: pytest.fail("decoded again"))
        again = [load_data(config, 8, fraction) for fraction in fractions]
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.val.x, other.val.x)
        assert torch.equal(one.val.x, first[1].val.x)
        assert one.fingerprint == other.fingerprint
    least = [images.train.subset(0.05, 0).x for images in (*first, *again)]
    assert all(torch.equal(least[0], x) for x in least)
    with pytest.raises(IndexError, match="not read"):
        first[0].train.x[:]


def test_only_what_is_read_is_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_LONG_S", 0.0)
    write_tar(tmp_path / "all.tar", shades(200))
    notices: list[str] = []
    load_data(timm(tmp_path / "all.tar"), 8, 0.5, Teller(notices.append))
    told = "360 images are decoded once to 8 x 8 pixels and kept: 69.1 kB in"  # 120 score
    assert f"{tmp_path}/all.tar: {told}" in notices[0]


def test_a_broken_image_is_skipped_where_it_is_read_and_the_others_are_drawn_as_before(
    tmp_path: Path,
) -> None:
    files, config = shades(200), timm(tmp_path / "all.tar")
    used = used_images(config, 0.5, torch.arange(600) // 200).tolist()
    read, unread = used[7], next(number for number in range(600) if number not in used)
    torn = dict.fromkeys((list(files)[number] for number in (read, unread)), b"no image")
    write_tar(tmp_path / "all.tar", files | torn)
    images = load_data(config, 8, 0.5)
    assert [line.split(":")[0] for line in images.skipped] == [list(files)[read]]
    assert len(images.val) + len(images.train.subset(0.5, 0)) == len(used) - 1
    drawn = torch.cat([images.val.x, images.train.subset(0.5, 0).x])
    pixels = {tuple(image[:, 0, 0].tolist()) for image in drawn}
    expected = {(n % 200, 100 * (n // 200), 9 * (n % 200) % 250) for n in used if n != read}
    assert pixels == expected


def test_the_set_says_its_whole_path(
    tars: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a folder does: elsewhere, a relative path says nothing."""
    monkeypatch.chdir(tmp_path.parent)
    read_source(tars.model_copy(update={"root": tmp_path.name}), (8, 6))
    assert training_set().facts.root == str(tmp_path)


def test_images_that_are_enlarged_are_told_from_a_sample(tmp_path: Path) -> None:
    write_tar(tmp_path / "all.tar", by_class(100, *COLOURS))
    for image_hw, said in (((12, 12), ()), ((16, 16), ("30 of 30 images that were looked at",))):
        notices: list[str] = []
        read_source(timm(tmp_path / "all.tar"), image_hw, teller=Teller(notices.append))
        assert tuple(line.split(": ")[1].split(" are")[0] for line in notices) == said


@pytest.mark.parametrize("is_tar", [True, False])
def test_images_that_are_converted_are_told_from_a_sample(tmp_path: Path, is_tar: bool) -> None:
    """Of a class in three, the images are grey and lie on their side."""
    exif, grey = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6
    Image.new("L", (12, 14)).save(grey, "PNG", exif=exif)
    files = by_class(100, "blue", "green") | {f"red/{n}.png": grey.getvalue() for n in range(100)}
    place = tmp_path / ("all.tar" if is_tar else "all")
    if is_tar:
        write_tar(place, files)
    else:
        for name, content in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
    notices: list[str] = []
    read_source(timm(place), (8, 8), teller=Teller(notices.append))
    assert notices == [
        f"{place}: of 30 images that were looked at 10 are grey, 10 are turned by EXIF; all are "
        "read upright, in RGB of 8 bits"
    ]


def test_a_second_time_nothing_is_decoded_until_the_file_changes(
    tars: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_source(tars, (8, 6))
    with monkeypatch.context() as patch:
        patch.setattr(kept, "write_shard", lambda *_, **__: pytest.fail("decoded again"))
        read_source(tars, (8, 6))
    write_tar(tmp_path / "train.tar", by_class(40, *COLOURS))
    again = read_source(tars, (8, 6))
    assert again.fingerprint["num_images"] == 120
    assert again.fingerprint != first.fingerprint


@pytest.mark.parametrize("damage", ["killed before it was whole", "a byte has changed"])
def test_only_a_part_that_is_missing_or_damaged_is_made_again(
    tars: DataConfig, damage: str
) -> None:
    first = read_source(tars, (8, 6)).train[0][:]
    images = training_set()
    before = inodes(images)
    assert len(before) == 3
    if damage.startswith("killed"):
        images.place(1).with_suffix(".npz").unlink()
    else:
        flip(images.place(1).with_suffix(".npy"))
    assert torch.equal(read_source(tars, (8, 6)).train[0][:], first)
    assert [one == other for one, other in zip(before, inodes(images), strict=True)] == [
        True,
        False,
        True,
    ]


READING = (
    "import sys; from tests.data.test_kept import *;"
    "used = {'some': last_half, 'all': everything}[sys.argv[2]];"
    "read_source(timm(Path(sys.argv[1])), (8, 6), used)"
)


def last_half(labels: torch.Tensor) -> torch.Tensor:
    """The last half of the images."""
    return torch.arange(len(labels) // 2, len(labels))


def reading(config: DataConfig, share: str) -> subprocess.Popen[bytes]:
    """A process that reads `some` of the images or `all` of them."""
    return subprocess.Popen([sys.executable, "-c", READING, str(config.root), share])


@pytest.mark.slow
@pytest.mark.parametrize("share", ["some", "all"])
def test_a_builder_that_is_killed_goes_on_where_it_was(
    tmp_path: Path, share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tar(tmp_path / "all.tar", by_class(2000, "blue") | by_class(1000, "green", "red"))
    config, used = timm(tmp_path / "all.tar"), last_half if share == "some" else everything
    process = reading(config, share)
    place = home()
    assert place is not None
    while process.poll() is None and len(list(place.glob("*/*.npz"))) < 3:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = {path: path.stat().st_ino for path in place.glob("*/*.npz")}
    assert there
    found, numbers = read_source(config, (8, 6), used), used(torch.empty(4000))
    assert sum(path.stat().st_ino == inode for path, inode in there.items()) >= len(there) - 1
    assert torch.equal(found.train[0][numbers], in_memory(config, monkeypatch).train[0][numbers])


@pytest.mark.slow
def test_two_builders_of_a_share_and_one_of_all_make_two_sets(tmp_path: Path) -> None:
    write_tar(tmp_path / "all.tar", shades(250))
    config = timm(tmp_path / "all.tar")
    processes = [reading(config, share) for share in ("some", "all", "some")]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert sorted(held.images.facts.number for held in held_sets(home())) == [375, 750]
    some, whole = (read_source(config, (8, 6), used).train[0] for used in (last_half, everything))
    numbers = last_half(torch.empty(750))
    assert torch.equal(some[numbers], whole[numbers])


def test_grey_images_of_torchvision_keep_their_one_channel(tmp_path: Path) -> None:
    images = write_fashion(tmp_path)
    config = timm(tmp_path, dataset="torch/fashion_mnist", val_fraction=0.5)
    for _ in range(2):
        pixels = read_source(config, (28, 28)).train[0]
        assert isinstance(pixels, Rows)
        assert np.array_equal(pixels[:].numpy()[:, 0], images)
    assert training_set().facts.root == f"torch/fashion_mnist in {tmp_path}"
    assert load_data(config, 28).in_chans == 1


def test_images_of_different_channels_are_refused(tmp_path: Path) -> None:
    grey = np.zeros((4, 8, 8), dtype=np.uint8)

    class Mixed(list[tuple[torch.Tensor, int]]):
        pass

    data = Mixed((torch.from_numpy(grey[:channels]), 0) for channels in (1, 1, 3))
    with pytest.raises(Exception, match="item 2 has 3 channels, and the first one 1"):
        kept.read_kept(tmp_path / "home", "key", timm(tmp_path), data, (8, 8))


def linked(folder_root: Path, elsewhere: Path) -> DataConfig:
    """A folder of classes of which one is a link."""
    (folder_root / "train" / "red").rename(elsewhere)
    (folder_root / "train" / "red").symlink_to(elsewhere)
    return timm(folder_root)


def test_a_linked_class_folder_is_kept_and_its_changes_are_seen(
    folder_root: Path, tmp_path: Path
) -> None:
    config = linked(folder_root, tmp_path / "elsewhere")
    first = read_source(config, (8, 8)).train[0]
    assert isinstance(first, Rows)
    assert isinstance(first.store, Shards)
    some = next((tmp_path / "elsewhere").glob("*"))
    some.rename(some.with_stem("another"))
    assert read_source(config, (8, 8)).train[0][:].shape == first.shape
    assert len([held for held in held_sets(home()) if held.images.facts.number == len(first)]) == 2


def test_a_folder_that_is_linked_into_itself_is_told_from_its_changes(folder_root: Path) -> None:
    (folder_root / "train" / "red" / "loop").symlink_to(folder_root / "train")
    found = timm_sets._files(folder_root / "train")
    assert found is not None
    assert len({path for path, *_ in found}) == len(found) == 15


def test_what_cannot_be_told_from_its_changes_is_in_memory_and_that_is_said(
    folder_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.data.timm_sets._files", lambda place: None)
    notices: list[str] = []
    source = read_source(timm(folder_root), (8, 8), teller=Teller(notices.append))
    assert isinstance(source.train[0], torch.Tensor)
    assert notices[0] == (
        f"timm data set {folder_root}: is decoded at each start and held in memory: "
        "nothing tells whether it has changed"
    )
