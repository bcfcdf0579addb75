"""Which images a network is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.diagnose.networks import MHSA, network
from vitnas.config.data import DataConfig
from vitnas.diagnose.images import data_named, show
from vitnas.diagnose.subject import Subject, subject_of
from vitnas.errors import ConfigError, DataError
from vitnas.training.data import load_data


def taker(side: int = 8, channels: int = 1) -> Subject:
    model = network(MHSA, img_size=side, in_chans=channels)
    return subject_of(model, "taker", "random")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve images of unequal sizes, without classes."""
    for index in range(12):
        Image.new("RGB", (20 + index, 30), (20 * index, 0, 255)).save(tmp_path / f"{index}.png")
    return tmp_path


def test_named_data_is_as_in_training_and_held_out() -> None:
    """Same size, same normalisation, images from the scoring split."""
    shown = show(DataConfig(), taker(), 20)
    whole = load_data(DataConfig(), 8)
    assert torch.equal(shown.images.mean, whole.val.mean)
    assert len(shown.images) == 20
    held = {image.numpy().tobytes() for image in whole.val.x}
    assert {image.numpy().tobytes() for image in shown.images.x} <= held
    assert shown.facts["available"] == len(whole.val)


def test_the_seed_draws_the_images() -> None:
    drawn = [show(DataConfig(), taker(), 20, seed).images.x for seed in (0, 0, 1)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_there_may_be_fewer_than_were_asked_for() -> None:
    shown = show(DataConfig(), taker(), 10_000)
    assert len(shown.images) == shown.facts["images"] == shown.facts["available"]


def test_images_are_resized_to_the_network() -> None:
    small, large = show(DataConfig(), taker(16), 4), show(DataConfig(), taker(72), 4)
    assert small.images.x.shape == (4, 1, 16, 16)
    assert large.images.x.shape == (4, 1, 72, 72)
    assert large.images.x.dtype == torch.uint8


def test_other_channels_are_refused_before_anything_is_read() -> None:
    with pytest.raises(ConfigError) as error:
        show(DataConfig(name="cifar10", root="/none"), taker(), 4)
    rule = "in_chans = 1: cifar10 has images with 3 channels; taker needs another number"
    assert str(error.value) == f"{rule} (nearest: 3)"


def test_a_folder_without_train_gives_all_its_images(folder: Path) -> None:
    shown = show(data_named(str(folder)), taker(channels=3), 8)
    assert shown.images.x.shape == (8, 3, 8, 8)
    assert (shown.facts["available"], shown.facts["part"]) == (12, f"the 12 below {folder}")
    assert float(shown.images.normalise(shown.images.x).mean()) == pytest.approx(0, abs=1e-3)
    with pytest.raises(ConfigError, match="3 channels"):
        show(folder, taker(), 4)


def test_a_network_that_knows_its_normalisation_keeps_it(folder: Path) -> None:
    knowing = replace(taker(channels=3), mean=(0.5, 0.25, 0.0), std=(0.1, 0.1, 0.1))
    images = show(folder, knowing, 4).images
    assert images.mean.flatten().tolist() == [127.5, 63.75, 0]
    images = show(DataConfig(), replace(taker(), mean=(0.5,), std=(0.1,)), 4).images
    assert (images.mean.tolist(), images.std.tolist()) == ([[[127.5]]], [[[25.5]]])


def test_values_for_other_channels_are_not_the_network_s() -> None:
    """As timm has them for a network that was built for grey images."""
    of_timm = replace(taker(), mean=(0.5, 0.5, 0.5), std=(0.1, 0.1, 0.1))
    assert torch.equal(
        show(DataConfig(), of_timm, 4).images.mean, load_data(DataConfig(), 8).val.mean
    )


def test_a_folder_with_classes_shows_what_is_held_out(folder: Path) -> None:
    for index, path in enumerate(sorted(folder.glob("*.png"))):
        target = folder / "train" / "ab"[index % 2] / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    shown = show(data_named(str(folder)), taker(channels=3), 256)
    assert shown.facts["part"] == "2 held out of train"  # a fifth of six in each class, rounded
    assert len(shown.images) == 2


def test_where_the_images_come_from_is_told_in_the_words_of_a_training(folder: Path) -> None:
    assert show(DataConfig(), taker(), 4).facts["part"] == "287 held out of train"
    own = DataConfig(val_split="test", val_fraction=0.0)
    assert show(own, taker(), 4).facts["part"] == "the 359 of test"
    for index, path in enumerate(sorted(folder.glob("*.png"))):
        for part, few in (("train", 4), ("val", 12)):
            target = folder / part / "ab"[index % 2] / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if index < few:
                target.write_bytes(path.read_bytes())
    seen = DataConfig(name="imagefolder", root=str(folder), val_split="val", val_fraction=0.0)
    assert show(seen, taker(channels=3), 4).facts["part"] == "the 12 of val"
    small = show(data_named(str(folder)), taker(channels=3), 4)
    assert small.facts["part"] == "the 4 of train, which are too few to hold some out"


@pytest.mark.parametrize(
    ("names", "labels", "classes"),
    [
        ((), [0, 1], 2),
        (("a b", "c"), [0, 1], 2),
        (("c", "a b"), [1, 0], 2),
        (("c", "d"), [0, 1], None),
    ],
)
def test_classes_are_those_of_the_network(
    names: tuple[str, ...], labels: list[int], classes: int | None, tmp_path: Path
) -> None:
    """timm's folders have another order of classes than ours: 2 comes before 10."""
    for number, name in enumerate(("a b", "c")):
        (tmp_path / "train" / name).mkdir(parents=True)
        for index in range(10):
            image = Image.new("RGB", (8, 8), (100 * number, index, 0))
            image.save(tmp_path / "train" / name / f"{index}.png")
    subject = taker(8, 3)
    subject.network.label_names = names  # type: ignore[assignment]
    shown = show(tmp_path, subject, 4)
    assert shown.classes == classes
    first = [int(x[0].float().mean() > 50) for x in shown.images.x]
    assert shown.images.y.tolist() == [labels[number] for number in first]


def test_a_folder_without_images(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no image"):
        show(tmp_path, taker(channels=3), 4)


def test_a_broken_image_is_named_and_skipped_up_to_one_in_a_hundred(tmp_path: Path) -> None:
    for index in range(120):
        Image.new("RGB", (8, 8), (2 * index, 0, 255)).save(tmp_path / f"{index:03}.png")
    whole = show(tmp_path, taker(channels=3), 120)
    assert whole.facts["skipped"] == []
    torn = tmp_path / "007.png"
    torn.write_bytes(b"no image")
    shown = show(tmp_path, taker(channels=3), 120)
    assert torch.equal(shown.images.x, torch.cat([whole.images.x[:7], whole.images.x[8:]]))
    assert len(shown.images.y) == shown.facts["images"] == 119
    assert shown.facts["skipped"] == [f"{torn}: not a readable image (its format is not known)"]
    (tmp_path / "008.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="2 of 120 images cannot be read, more than 1%"):
        show(tmp_path, taker(channels=3), 120)


def test_names_folders_and_spaces(tmp_path: Path) -> None:
    assert data_named("digits") == DataConfig()
    assert data_named("cifar10:/data/c") == DataConfig(name="cifar10", root="/data/c")
    assert data_named("hybrid_fashion") == DataConfig(name="fashion_mnist", val_fraction=0.1)
    with pytest.raises(ConfigError, match=r"nearest: fashion_mnist\)"):
        data_named("fashion_mnit")
    with pytest.raises(ConfigError, match="no such file"):
        data_named(str(tmp_path / "none.yaml"))
