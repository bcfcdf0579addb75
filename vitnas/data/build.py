"""Make what is missing or damaged of a set of decoded images, on all cores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.pool import ThreadPool
from pathlib import Path

from filelock import Timeout

from vitnas.cores import cores
from vitnas.data.cache import make_room, plain_errors, size_text
from vitnas.data.decode import BrokenImage, check_readable, without_warnings
from vitnas.data.imageset import ImageFile, ImageSet
from vitnas.data.shard import (
    ShardFacts,
    build_in_worker,
    build_shard,
    compared,
    decoded,
    is_fresh,
    is_sound,
    offset_of,
    read_facts,
)
from vitnas.data.telling import SILENT, Bar, Teller
from vitnas.durations import span
from vitnas.errors import DataError

COMPARING_S = 0.5
"""Time for comparing pixels that have not changed with their checksums, oldest first, at a start.
"""
_FEW = 256  # images that are not worth processes of their own
_SAMPLE = 32  # images that are timed before many are decoded
_LONG_S = 5.0  # from here on it is told beforehand
_Job = tuple[Path, list[str]]  # a shard's place and its image files


def complete(
    images: ImageSet, files: Sequence[ImageFile], teller: Teller = SILENT
) -> list[ShardFacts]:
    """Make the set complete; the shards that are there and sound stay as they are.

    Several processes may do so at once: one builds, and the others wait for it.

    Args:
        images: the set.
        files: its image files.
        teller: told what will be decoded where that takes more than seconds, and how far it is.

    Returns:
        What is known of each shard.

    Raises:
        DataError: there is no room, or the system refuses to write.
    """
    facts = _known(images, files)
    if None in facts:
        with plain_errors(images.folder.parent), _alone(images, teller):
            facts = _known(images, files)
            missing = [number for number, known in enumerate(facts) if known is None]
            needed = sum(len(images.span(number)) for number in missing)
            make_room(images.folder.parent, needed * images.bytes_of_image, images)
            _build(images, files, missing, teller)
            with without_warnings():
                for number in missing:
                    facts[number] = _fresh(images, files, number)
    found = [known for known in facts if known is not None]
    with suppress(OSError):  # a folder that may only be read
        images.note_use()
    if len(found) < images.num_shards:
        raise DataError(f"{images.folder}: what was just written there is gone or damaged")
    return found


@contextmanager
def _alone(images: ImageSet, teller: Teller) -> Iterator[None]:
    """No other process builds or deletes the set in here."""
    images.folder.mkdir(parents=True, exist_ok=True)
    lock = images.lock()
    try:
        lock.acquire(timeout=0)
    except Timeout:
        teller.notice("another process reads the same images; waiting for it")
        lock.acquire()
    try:
        images.clean()
        images.note_use()
        yield
    finally:
        lock.release()


def _known(images: ImageSet, files: Sequence[ImageFile]) -> list[ShardFacts | None]:
    """What is known of each shard; None where it is missing or damaged."""
    with without_warnings(), ThreadPool(cores()) as pool:
        numbers = range(images.num_shards)
        found = pool.map(lambda number: _fresh(images, files, number), numbers)
        oldest = sorted(
            (number for number in numbers if found[number] is not None),
            key=lambda number: compared(images.place(number)),
        )
        until = time.monotonic() + COMPARING_S

        def is_still(number: int) -> bool:
            known = found[number]
            if known is None or time.monotonic() >= until:
                return True
            return is_sound(images.place(number), known.checksum, images.shape(number))

        for number, still in zip(oldest, pool.map(is_still, oldest, chunksize=1), strict=True):
            if not still:
                found[number] = None
    return found


def _fresh(images: ImageSet, files: Sequence[ImageFile], number: int) -> ShardFacts | None:
    """What is known of a shard; None where it is missing, damaged, or a broken file no longer is.

    Its pixels are compared if they may have changed.
    """
    place, shape = images.place(number), images.shape(number)
    facts = read_facts(place, shape[0])
    if facts is None or offset_of(place, shape) is None:
        return None
    if not (is_fresh(place) or is_sound(place, facts.checksum, shape)):
        return None
    numbers = images.span(number)
    return None if any(_is_readable(files[numbers[index]]) for index in facts.broken) else facts


def _is_readable(file: ImageFile) -> bool:
    """Whether an image can be read now, as when a disk is back or a permission is given."""
    try:
        check_readable(Path(file.path))
    except BrokenImage:
        return False
    return True


def _build(
    images: ImageSet, files: Sequence[ImageFile], missing: Sequence[int], teller: Teller
) -> None:
    """Decode the images of the shards `missing` and write these."""
    jobs = [
        (images.place(number), [files[index].path for index in images.span(number)])
        for number in missing
    ]
    total, so_far = sum(len(paths) for _, paths in jobs), 0
    if total <= _FEW:
        for place, paths in jobs:
            build_shard(place, paths, images.facts.image_hw)
        return
    _announce(images, [path for _, paths in jobs for path in paths], teller)
    bar = Bar(teller.doing, total)
    bar(0)
    for number in _built(images, jobs):
        so_far += number
        bar(so_far)


def _announce(images: ImageSet, paths: Sequence[str], teller: Teller) -> None:
    """Say what will be decoded, and about how long it takes, unless that is short."""
    number, (height, width) = len(paths), images.facts.image_hw
    some = paths[:: -(-number // _SAMPLE)]
    started = time.monotonic()
    decoded(some, images.facts.image_hw)
    seconds = (time.monotonic() - started) * number / len(some) / cores()
    if seconds > _LONG_S:
        size = size_text(number * images.bytes_of_image)
        teller.notice(
            f"{images.facts.root}: {number:,} images are decoded once to {height} x {width} pixels "
            f"and kept: {size} in {images.folder.parent}, about {span(seconds)}"
        )


def _built(images: ImageSet, jobs: Sequence[_Job]) -> Iterator[int]:
    """The number of images in each shard that processes of their own have written."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        work = Parallel(n_jobs=cores(), batch_size=1, return_as="generator_unordered")
        yield from work(delayed(build_in_worker)(*job, images.facts.image_hw) for job in jobs)
    except BrokenProcessPool:
        raise DataError("a process that decodes images was killed; was memory short?") from None
    finally:
        get_reusable_executor().shutdown(wait=True)
