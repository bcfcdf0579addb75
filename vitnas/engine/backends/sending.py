"""Decoded images from the machine that has them to the nodes of a cluster, a shard at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vitnas.data.imageset import ImageSet
from vitnas.engine.backends import cluster  # before Ray: it says how quiet Ray shall be
from vitnas.errors import DataError

# isort: split
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

assert cluster
if TYPE_CHECKING:
    from vitnas.data.elsewhere import Piece

_AHEAD = 2  # shards that are on their way to a process; each has 64 MiB at most


class _Shelf:
    """An actor on the machine that has the sets; it holds no more than a shard in memory."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def hold(self, images: ImageSet) -> None:
        """Keep a set from being deleted as long as the search lasts."""
        if images.folder.name not in self._held:
            try:
                self._held[images.folder.name] = images.hold()
            except OSError:
                raise DataError(f"{images.folder}: decoded images are gone") from None

    def read(self, images: ImageSet, shard: int) -> Piece:
        """A shard."""
        from vitnas.data.elsewhere import read_piece  # torch, which the driver does without

        return read_piece(images, shard)


@dataclass(frozen=True)
class RaySender:
    """Hands out shards through Ray's object store, where each stays until its reader has it.

    Attributes:
        shelf: Ray's handle of a `_Shelf`.
    """

    shelf: Any

    def hold(self, images: ImageSet) -> None:
        """See `vitnas.data.elsewhere.Sender`."""
        _got(self.shelf.hold.remote(images))

    def pieces(self, images: ImageSet, shards: Sequence[int]) -> Iterator[Piece]:
        """See `vitnas.data.elsewhere.Sender`."""
        due, coming = iter(shards), deque[Any]()
        while True:
            while len(coming) < _AHEAD and (shard := next(due, None)) is not None:
                coming.append(self.shelf.read.remote(images, shard))
            if not coming:
                return
            yield _got(coming.popleft())


def sender_here() -> RaySender:
    """A sender of the sets on this machine, for as long as this driver lives."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    kind = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Shelf)
    return RaySender(kind.options(scheduling_strategy=here).remote())


def _got(coming: Any) -> Any:
    """What the shelf gives."""
    try:
        return ray.get(coming)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, DataError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"decoded images do not come from the driver's machine: {reason}") from None
