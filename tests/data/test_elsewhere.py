"""Images of another machine: the same pixels in this machine's cache, each part sent once."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from tests.data.sets import complete, flip, small_set
from vitnas import memory
from vitnas.config.data import DataConfig
from vitnas.data.elsewhere import Elsewhere, Piece, read_piece
from vitnas.data.imageset import ImageSet
from vitnas.data.rows import Rows
from vitnas.data.shards import Shards
from vitnas.errors import DataError, MemoryLimitError
from vitnas.training.data import load_data


@dataclass
class Direct:
    """Reads the shards itself; after `most` of them it fails."""

    most: int = 100
    sent: list[int] = field(default_factory=list)
    held: list[str] = field(default_factory=list)

    def hold(self, images: ImageSet) -> None:
        self.held.append(images.folder.name)

    def pieces(self, images: ImageSet, shards: Sequence[int]) -> Iterator[Piece]:
        for shard in shards:
            if len(self.sent) == self.most:
                raise DataError("the machine does not answer")
            self.sent.append(shard)
            yield read_piece(images, shard)


@pytest.fixture
def there(tmp_path: Path) -> ImageSet:
    """150 images in three shards, in the cache of another machine."""
    found, files = small_set(tmp_path, 150)
    complete(found, files)
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's cache, which is empty."""
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", str(tmp_path / "here"))
    return tmp_path / "here"


ALL = torch.arange(150)


def test_they_come_once_into_this_machine_s_cache(there: ImageSet, here: Path) -> None:
    images, sender = Elsewhere(there, first := Direct()), Direct(0)
    assert (images.shape, len(images), images.device.type) == ((150, 3, 4, 4), 150, "cpu")
    assert not here.exists(), "not before they are needed"
    assert torch.equal(images[ALL], Shards(there)[ALL])
    assert first.sent == [0, 1, 2]
    for name in ("00000.npy", "00002.npy", "00001.npz"):
        assert (here / there.folder.name / name).read_bytes() == (there.folder / name).read_bytes()
    again = Elsewhere(there, sender)
    assert torch.equal(again[ALL], images[ALL])
    assert isinstance(again.here(), Shards)
    assert again.here() is again.here()


def test_only_what_is_missing_or_damaged_is_sent(there: ImageSet, here: Path) -> None:
    with pytest.raises(DataError, match="does not answer"):
        Elsewhere(there, Direct(2)).here()
    sender = Direct()
    Elsewhere(there, sender).here()
    assert sender.sent == [2]
    flip(here / there.folder.name / "00001.npy")
    assert torch.equal(Elsewhere(there, sender)[ALL], Shards(there)[ALL])
    assert sender.sent == [2, 1]


def test_what_is_damaged_on_its_way_is_not_used(there: ImageSet, here: Path) -> None:
    class Noisy(Direct):
        def pieces(self, images: ImageSet, shards: Sequence[int]) -> Iterator[Piece]:
            for pixels, told in super().pieces(images, shards):
                yield pixels[:-1] + bytes([pixels[-1] ^ 1]), told

    with pytest.raises(DataError, match=r"00000\.npy: was damaged on its way here"):
        Elsewhere(there, Noisy()).here()
    assert torch.equal(Elsewhere(there, Direct())[ALL], Shards(there)[ALL])


def test_a_set_that_is_gone_is_said(there: ImageSet, here: Path) -> None:
    there.place(1).with_suffix(".npy").unlink()
    with pytest.raises(DataError, match="decoded images are gone; start again"):
        Elsewhere(there, Direct()).here()


def test_without_a_cache_they_are_in_memory(
    there: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
    images = Elsewhere(there, Direct())
    assert isinstance(images.here(), torch.Tensor)
    assert torch.equal(images[ALL], Shards(there)[ALL])
    monkeypatch.setattr(memory, "free_memory", lambda: 150 * 48 - 1)
    with pytest.raises(MemoryLimitError, match="150 images take"):
        Elsewhere(there, Direct()).here()


def test_what_is_pickled_is_where_they_are(there: ImageSet, here: Path) -> None:
    images = Elsewhere(there, Direct())
    images.here()
    content = pickle.dumps(images)
    assert len(content) < 1000
    assert torch.equal(pickle.loads(content)[ALL], images[ALL])


def test_a_folder_s_images_are_the_same_elsewhere(
    folder_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = load_data(DataConfig(name="imagefolder", root=str(folder_root)), 8)
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", str(tmp_path / "another"))
    sender = Direct()
    away = pickle.loads(pickle.dumps(images.sent(sender)))
    assert len(sender.held) == len(set(sender.held)) == 2, "the training and the test images"
    assert isinstance(away.train.pixels, Rows)
    assert isinstance(away.val.pixels, Rows)
    assert isinstance(away.train.pixels.store, Elsewhere)
    assert away.train.pixels.store is away.val.pixels.store
    away.fetch()
    one, two = (each.to("cpu").fold(1) for each in (images, away))
    for name in ("train", "val"):
        assert torch.equal(getattr(one, name).x, getattr(two, name).x)
    assert torch.equal(images.test().x, away.test().x)
    assert (away.mean, away.std) == (images.mean, images.std)
