"""Images of which some were read: indexed as if all were, as long as those are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.data.sets import complete, small_set
from vitnas import memory
from vitnas.data.rows import Rows, batches_of, channel_sums, joined, taken, there
from vitnas.data.shards import Shards
from vitnas.errors import MemoryLimitError

STORE = torch.arange(3 * 2 * 4 * 5, dtype=torch.uint8).reshape(3, 2, 4, 5)


@pytest.fixture
def rows() -> Rows:
    """Five images; the second and the last were not read."""
    return Rows(STORE, torch.tensor([2, -1, 0, 1, -1]))


def test_they_look_like_a_tensor(rows: Rows) -> None:
    assert rows.shape == (5, 2, 4, 5)
    assert len(rows) == 5
    assert torch.equal(rows[2:4], STORE[:2])
    assert torch.equal(rows[torch.tensor([3, 0, 3])], STORE[[1, 2, 1]])
    assert rows[torch.tensor([], dtype=torch.int64)].shape == (0, 2, 4, 5)


def test_what_was_not_read_cannot_be_asked_for(rows: Rows) -> None:
    assert there(rows, torch.tensor([4, 3, 1, 0])).tolist() == [3, 0]
    assert there(STORE, torch.tensor([2, 1])).tolist() == [2, 1]
    with pytest.raises(IndexError, match="not read"):
        rows[:]


def test_a_part_copies_no_pixel(rows: Rows) -> None:
    part = taken(rows, torch.tensor([3, 1]))
    assert isinstance(part, Rows)
    assert part.store is STORE
    assert part.places.tolist() == [1, -1]
    assert torch.equal(taken(STORE, torch.tensor([1]))[:], STORE[1:2])


def test_joined_parts_of_one_store_share_it(rows: Rows) -> None:
    both = joined(rows.of(torch.tensor([0])), rows)
    assert isinstance(both, Rows)
    assert both.store is STORE
    assert both.places.tolist() == [2, 2, -1, 0, 1, -1]


def test_joined_parts_of_two_stores_keep_their_images(rows: Rows) -> None:
    both = joined(rows, Rows(STORE + 100, torch.tensor([-1, 1])))
    assert isinstance(both, Rows)
    assert both.places.tolist() == [2, -1, 0, 1, -1, -1, 4]
    assert torch.equal(both[torch.tensor([0, 6])], torch.stack([STORE[2], STORE[1] + 100]))


def test_on_another_device_are_those_that_are_there(rows: Rows) -> None:
    assert rows.to("cpu") is rows
    moved = rows.of(torch.tensor([4, 3, 0])).to("meta")
    assert moved.store.shape == (2, 2, 4, 5)
    assert moved.places.device.type == "meta"


def test_from_disk_into_memory_come_those_that_are_there(tmp_path: Path) -> None:
    images, files = small_set(tmp_path)
    complete(images, files)
    on_disk = Rows(Shards(images), torch.tensor([4, -1, 2]))
    in_memory, index = on_disk.in_memory(), torch.tensor([2, 0])
    assert isinstance(in_memory.store, torch.Tensor)
    assert len(in_memory.store) == 2
    assert in_memory.places.tolist() == [0, -1, 1]
    assert torch.equal(in_memory[index], on_disk[index])
    assert in_memory.in_memory() is in_memory


def test_what_does_not_fit_into_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, files = small_set(tmp_path)
    complete(images, files)
    monkeypatch.setattr(memory, "free_memory", lambda: 4 * 48)
    with pytest.raises(MemoryLimitError, match="5 images take"):
        Rows(Shards(images), torch.arange(5)).in_memory()


def test_sums_are_exact_in_pieces_too(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = STORE.double()
    expected = wide.sum(dim=(0, 2, 3)), wide.square().sum(dim=(0, 2, 3))
    assert all(map(torch.equal, channel_sums(STORE), expected))
    monkeypatch.setattr("vitnas.data.rows._PIXELS", 20)
    some = rows.of(torch.tensor([0, 2, 3]))
    assert all(map(torch.equal, channel_sums(some), expected))


def test_streamed_images_are_the_same_and_their_numbers_stay_on_the_cpu(rows: Rows) -> None:
    streamed = rows.streamed("cpu")
    assert (streamed.shape, streamed.device.type, streamed.size) == (rows.shape, "cpu", 3 * 40)
    assert streamed.to("cpu") is streamed
    part = streamed.of(torch.tensor([3, 0]))
    assert torch.equal(part[:], STORE[[1, 2]])
    assert torch.equal((part + streamed.of(torch.tensor([2])))[:], STORE[[1, 2, 0]])
    other = Rows(STORE.clone(), torch.tensor([1])).streamed("cpu")
    assert torch.equal((part + other)[:], STORE[[1, 2, 1]])


def test_streamed_batches_are_those_of_one_index_after_the_other(tmp_path: Path) -> None:
    images, files = small_set(tmp_path, 150)
    complete(images, files)
    on_disk = Rows(Shards(images), torch.randperm(150, generator=torch.manual_seed(0)))
    each: list[torch.Tensor | slice] = [torch.tensor([149, 3, 3]), slice(20, 90), slice(140, 200)]
    expected = [on_disk[index] for index in each]
    for rows in (on_disk, on_disk.streamed("cpu"), on_disk.in_memory()):
        found = list(batches_of(rows, iter(each)))
        assert all(map(torch.equal, found, expected))
        assert len(found) == len(expected)
    assert all(map(torch.equal, batches_of(on_disk[:], each), expected))


def test_a_streamed_batch_of_what_was_not_read_is_refused(rows: Rows) -> None:
    with pytest.raises(IndexError, match="not read"):
        list(rows.streamed("cpu").batches([torch.tensor([0]), torch.tensor([1])]))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_images_on_a_cuda_device_are_not_copied_again(rows: Rows) -> None:
    for there_now in (rows.to("cuda"), rows.streamed("cuda")):
        assert there_now.to("cuda") is there_now
        assert there_now[2:4].device.type == "cuda"
        assert torch.equal(there_now[torch.tensor([3, 0])].cpu(), STORE[[1, 2]])
        each = [torch.tensor([3]), torch.tensor([0, 2])]
        found = [batch.cpu() for batch in there_now.batches(each)]
        assert all(map(torch.equal, found, [STORE[[1]], STORE[[2, 0]]]))
