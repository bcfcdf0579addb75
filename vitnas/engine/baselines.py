"""The baselines of a run: trained after its trials, on the same images in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

from vitnas.baselines.baseline import PricedBaseline
from vitnas.config.data import DataConfig
from vitnas.config.notation import human
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.cache import Cache
from vitnas.engine.batch.references import FILE_NAME
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.watch.interrupts import two_step_interrupt
from vitnas.seeds import derive_seed
from vitnas.sessions import Data

_Answers = Callable[[Iterable[Request]], Iterator[tuple[Request, Answer]]]


def train_baselines(
    path: Path,
    requests: Mapping[Request, PricedBaseline],
    answers: _Answers,
    cache: Cache,
    *,
    notice: Callable[[str], None],
    ended: Callable[[str], None],
) -> None:
    """Train what the run does not have yet; each result is in its file before the next is told.

    Args:
        path: the run's folder.
        requests: see `requests_for`.
        answers: of the back end; not called where nothing is left to train.
        cache: what other runs found.
        notice: told what happens on Ctrl-C.
        ended: told of each result.

    Raises:
        KeyboardInterrupt: Ctrl-C, once what was running has ended, or at once the second time.
        RunError: the run's file is damaged.
    """
    book = Book(path / FILE_NAME)
    told = _Told(len(requests), len(requests) - len(book.missing(requests)), ended)

    def keep(request: Request, answer: Answer) -> None:
        member = requests[request]
        costs = {"flops": member.flops, "num_params": member.num_params}
        answer = answer.model_copy(update=costs)
        book.put(request, answer)
        told(member, answer)

    for request in book.missing(requests):
        if (known := cache.get(request)) is not None:
            keep(request, known)
    if not (missing := book.missing(requests)):
        return
    with _until_interrupted(missing, notice) as asked:
        for request, answer in answers(asked):
            keep(request, answer)
            cache.put(request, answer)
    if book.missing(requests):
        raise KeyboardInterrupt


def requests_for(
    members: Sequence[PricedBaseline], proxy: ProxyConfig, seed: int
) -> dict[Request, PricedBaseline]:
    """The training of each baseline of a run with this seed, scored on the test images, too."""
    own = [derive_seed(seed, member.baseline.key) for member in members]
    return {
        Request(member.baseline, proxy, number, test=True): member
        for member, number in zip(members, own, strict=True)
    }


@contextmanager
def _until_interrupted(
    requests: Iterable[Request], notice: Callable[[str], None]
) -> Iterator[Iterator[Request]]:
    """The requests, no more of them after the first Ctrl-C."""
    stopped: list[bool] = []

    def wind_down() -> None:
        stopped.append(True)
        notice("finishing the baselines that are running; Ctrl-C again stops now")

    with two_step_interrupt(wind_down):
        yield takewhile(lambda request: not stopped, requests)


def shared_cache(data: DataConfig, found: Data, device: str, session: Mapping[str, Any]) -> Cache:
    """Answers of other runs that this run's trainings would give, too.

    Nothing is shared where the code has changes that no revision names.

    Args:
        data: as the space says it.
        found: the images.
        device: that trains.
        session: facts of `vitnas.environment.session_facts`.
    """
    revision = session["git_revision"]
    if revision is not None and revision.endswith("+"):
        return Cache(None)
    facts = {
        "data": data.model_dump(mode="json", exclude={"root"}),
        "images": found.told(),
        "device": device,
        "versions": session["versions"],
        "revision": revision,
    }
    return Cache(facts)


class _Told:
    """Tells of each result in a line.

    Args:
        number: of all baselines.
        done: before this session.
        notice: where the lines go.
    """

    def __init__(self, number: int, done: int, notice: Callable[[str], None]) -> None:
        self._number, self._done, self._notice = number, done, notice

    def __call__(self, member: PricedBaseline, answer: Answer) -> None:
        self._done += 1
        reached = "" if answer.top1 is None else f"{answer.top1:6.2f} %"
        place = f"[baseline {self._done:>{len(str(self._number))}}/{self._number}]"
        line = f"{place} {member.baseline.name:<14} {answer.outcome.value:<9} {reached:>8} "
        line += f"{human(member.flops):>7} FLOPs"
        self._notice(line if answer.error is None else f"{line}  {answer.error}")
