"""The baselines of a run: trained after its trials, on the same images in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vitnas.baselines.baseline import PricedBaseline
from vitnas.config.notation import human
from vitnas.config.training import DataConfig, ProxyConfig
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
    members: Sequence[PricedBaseline],
    proxy: ProxyConfig,
    seed: int,
    answers: _Answers,
    cache: Cache,
    notice: Callable[[str], None],
) -> None:
    """Train what the run does not have yet; each result is in its file before the next is told.

    Args:
        path: the run's folder.
        members: the networks.
        proxy: how.
        seed: of the run.
        answers: of the back end.
        cache: what other runs found.
        notice: told of each result.

    Raises:
        KeyboardInterrupt: Ctrl-C, once what was running has ended, or at once the second time.
        RunError: the run's file is damaged.
    """
    book = Book(path / FILE_NAME)
    priced = {request.key: member for request, member in _requests(members, proxy, seed)}
    wanted = book.missing(request for request, _ in _requests(members, proxy, seed))
    told = _Told(len(members), len(members) - len(wanted), notice)

    def keep(request: Request, answer: Answer) -> None:
        member = priced[request.key]
        costs = {"flops": member.flops, "num_params": member.num_params}
        answer = answer.model_copy(update=costs)
        book.put(request, answer)
        told(member, answer)

    for request in wanted:
        if (known := cache.get(request)) is not None:
            keep(request, known)
    stopped: list[bool] = []

    def wind_down() -> None:
        stopped.append(True)
        notice("finishing the baselines that are running; Ctrl-C again stops now")

    def asked() -> Iterator[Request]:
        for request in book.missing(wanted):
            if stopped:
                return
            yield request

    with two_step_interrupt(wind_down):
        for request, answer in answers(asked()):
            keep(request, answer)
            cache.put(request, answer)
    if book.missing(wanted):
        raise KeyboardInterrupt


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


def _requests(
    members: Sequence[PricedBaseline], proxy: ProxyConfig, seed: int
) -> Iterator[tuple[Request, PricedBaseline]]:
    for member in members:
        own = derive_seed(seed, member.baseline.key)
        yield Request(member.baseline, proxy, own, test=True), member


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
