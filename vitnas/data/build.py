"""Make what is missing or damaged of a set of decoded images, on all cores."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Protocol

from filelock import Timeout

from vitnas.cores import cores
from vitnas.data.cache import make_room, plain_errors, size_text
from vitnas.data.decode import (
    BrokenImage,
    check_readable,
    conversions,
    fitted,
    read_rgb,
    without_warnings,
)
from vitnas.data.imageset import ImageFile, ImageSet
from vitnas.data.shard import (
    ShardFacts,
    build_shard,
    compared,
    is_fresh,
    is_sound,
    offset_of,
    read_facts,
)
from vitnas.data.telling import SILENT, Bar, Teller
from vitnas.durations import span
from vitnas.errors import DataError
from vitnas.hook import interrupts_later

COMPARING_S = 0.5
"""Time for comparing pixels that have not changed with their checksums, oldest first, at a start.
"""
SAMPLE = 32
"""Images that are timed before many are decoded."""
_FEW = 256  # images that are not worth processes of their own
_LONG_S = 5.0  # from here on it is told beforehand
_Job = tuple[Path, list[str]]  # a shard's place and its image files


class Origin(Protocol):
    """Reads the images of a set, each by its number."""

    @property
    def images(self) -> ImageSet:
        """The set."""

    def is_readable(self, number: int) -> bool:
        """Whether an image can be read now, as when a disk is back or a permission is given."""

    def decode(self, number: int) -> tuple[int, int] | None:
        """Decode an image on one core, for the time that it takes; its (h, w) as it came, in
        pixels, or None where it cannot be read."""

    def kinds(self, number: int) -> tuple[str, ...]:
        """What an image is that is converted, in words (see `conversions`); empty where that is not
        known, or nothing."""

    def write(self, shards: Sequence[int]) -> Iterator[int]:
        """Decode the images of these shards, write them, and give the number of each's images."""


def announce(origins: Sequence[Origin], teller: Teller) -> None:
    """Say what will be decoded of these sets together, and about how long it takes, unless that is
    short; and whether images of the sample that is timed are enlarged, or converted. What a set has
    counts as sound, before it is looked into."""
    missing = [
        (origin, number)
        for origin in origins
        for shard in range(origin.images.num_shards)
        if not origin.images.place(shard).with_suffix(".npz").exists()
        for number in origin.images.span(shard)
    ]
    if len(missing) <= _FEW:
        return
    some, images = missing[:: -(-len(missing) // SAMPLE)], origins[0].images
    started = time.monotonic()
    sides = [origin.decode(number) for origin, number in some]
    seconds = (time.monotonic() - started) * len(missing) / len(some) / cores()
    foretell(images, len(missing), seconds, teller)
    tell_enlarged(images, sides, teller)
    tell_converted(images, [origin.kinds(number) for origin, number in some], teller)


def foretell(images: ImageSet, number: int, seconds: float, teller: Teller) -> None:
    """Say that `number` images will be decoded, unless the `seconds` for it are few."""
    if seconds > _LONG_S:
        facts, size = images.facts, number * images.bytes_of_image
        text = reading_text(facts.root, number, facts.image_hw, size, images.folder.parent)
        teller.notice(f"{text}, about {span(seconds)}")


def reading_text(root: str, number: int, image_hw: tuple[int, int], size: int, home: Path) -> str:
    """That `number` images of the folder `root` become so many bytes in the folder `home`."""
    height, width = image_hw
    return (
        f"{root}: {number:,} images are decoded once to {height} x {width} pixels and kept: "
        f"{size_text(size)} in {home}"
    )


def tell_enlarged(
    images: ImageSet, sides: Sequence[tuple[int, int] | None], teller: Teller
) -> None:
    """Say how many of some images, of which (h, w) is given, are smaller than those of the set."""
    height, width = images.facts.image_hw
    small = sum(hw is not None and (hw[0] < height or hw[1] < width) for hw in sides)
    if small:
        teller.notice(
            f"{images.facts.root}: {small} of {len(sides)} images that were looked at are smaller "
            f"than {height} x {width} pixels and are enlarged"
        )


def tell_converted(images: ImageSet, looked_at: Sequence[tuple[str, ...]], teller: Teller) -> None:
    """Say how many of some images are something else than upright RGB of 8 bits, and what."""
    kinds = Counter(kind for each in looked_at for kind in each)
    if kinds:
        found = ", ".join(
            f"{number} {'is' if number == 1 else 'are'} {kind}"
            for kind, number in kinds.most_common()
        )
        teller.notice(
            f"{images.facts.root}: of {len(looked_at)} images that were looked at {found}; all are "
            "read upright, in RGB of 8 bits"
        )


def complete(origin: Origin, teller: Teller = SILENT) -> list[ShardFacts]:
    """Make a set complete; the shards that are there and sound stay as they are.

    Several processes may do so at once: one builds, and the others wait for it.

    Args:
        origin: reads its images.
        teller: told how far it is; for what is told before, see `announce`.

    Returns:
        What is known of each shard.

    Raises:
        DataError: there is no room, or the system refuses to write.
    """
    images, facts = origin.images, _known(origin)
    if None in facts:
        with plain_errors(images.folder.parent), alone(images, teller):
            facts = _known(origin)
            missing = [number for number, known in enumerate(facts) if known is None]
            needed = _count(images, missing) * images.bytes_of_image
            make_room(images.folder.parent, needed, images)
            _build(origin, missing, teller)
            with without_warnings():
                for number in missing:
                    facts[number] = fresh(origin, number)
    found = [known for known in facts if known is not None]
    with suppress(OSError):  # a folder that may only be read
        images.note_use()
    if len(found) < images.num_shards:
        raise DataError(f"{images.folder}: what was just written there is gone or damaged")
    return found


@contextmanager
def alone(images: ImageSet, teller: Teller) -> Iterator[None]:
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


def _known(origin: Origin) -> list[ShardFacts | None]:
    """What is known of each shard; None where it is missing or damaged."""
    images = origin.images
    with without_warnings(), ThreadPool(cores()) as pool:
        numbers = range(images.num_shards)
        found = pool.map(lambda number: fresh(origin, number), numbers)
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


def fresh(origin: Origin, number: int) -> ShardFacts | None:
    """What is known of a shard; None where it is missing, damaged, or a broken file no longer is.

    Its pixels are compared if they may have changed.
    """
    images = origin.images
    place, shape = images.place(number), images.shape(number)
    facts = read_facts(place, shape[0])
    if facts is None or offset_of(place, shape) is None:
        return None
    if not (is_fresh(place) or is_sound(place, facts.checksum, shape)):
        return None
    numbers = images.span(number)
    is_mended = any(origin.is_readable(numbers[index]) for index in facts.broken)
    return None if is_mended else facts


def _build(origin: Origin, missing: Sequence[int], teller: Teller) -> None:
    """Decode the images of the shards `missing` and write these."""
    total, so_far = _count(origin.images, missing), 0
    if total <= _FEW:
        for _ in origin.write(missing):
            pass  # each turn writes a shard; so few need no bar
        return
    bar = Bar(teller.doing, total)
    bar(0)
    for number in origin.write(missing):
        so_far += number
        bar(so_far)


def _count(images: ImageSet, shards: Sequence[int]) -> int:
    return sum(len(images.span(shard)) for shard in shards)


@dataclass(frozen=True)
class FilesOrigin:
    """Image files, decoded by processes of their own where they are many.

    Attributes:
        images: the set that they become.
        files: those of the set, in its order.
    """

    images: ImageSet
    files: Sequence[ImageFile]

    def is_readable(self, number: int) -> bool:
        """See `Origin`."""
        try:
            check_readable(Path(self.files[number].path))
        except BrokenImage:
            return False
        return True

    def decode(self, number: int) -> tuple[int, int] | None:
        """See `Origin`."""
        try:
            image = read_rgb(Path(self.files[number].path))
        except BrokenImage:
            return None
        fitted(image, self.images.facts.image_hw)
        return image.height, image.width

    def kinds(self, number: int) -> tuple[str, ...]:
        """See `Origin`."""
        return conversions(Path(self.files[number].path))

    def write(self, shards: Sequence[int]) -> Iterator[int]:
        """See `Origin`."""
        jobs = [(self.images.place(shard), self._paths(shard)) for shard in shards]
        if _count(self.images, shards) > _FEW:
            return _built(self.images, jobs)
        return (build_shard(*job, self.images.facts.image_hw) for job in jobs)

    def _paths(self, shard: int) -> list[str]:
        return [self.files[number].path for number in self.images.span(shard)]


def _built(images: ImageSet, jobs: Sequence[_Job]) -> Iterator[int]:
    """The number of images in each shard that processes of their own have written.

    After Ctrl-C they finish what they decode, and a later start has it.
    """
    from concurrent.futures import FIRST_COMPLETED, wait

    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    others, number = ProcessPoolExecutor(cores()), 2 * cores()
    calls = (others.submit(build_shard, *job, images.facts.image_hw) for job in jobs)
    try:
        with _deaf_to_ctrl_c():
            waiting = set(islice(calls, number))
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= set(islice(calls, len(done)))
            yield from (call.result() for call in done)
    except BrokenProcessPool:
        raise DataError("a process that decodes images was killed; was memory short?") from None
    finally:
        others.shutdown()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that start inside never get Ctrl-C, from their first instruction on; this one gets
    it when the block ends, and ends them."""
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    with interrupts_later():
        for tracker in (resource_tracker, loky_tracker):
            tracker.ensure_running()  # started below, it would change what is blocked
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
