"""The baselines of a run: trained after its trials, on the same images in the same way; those that
decide its comparison with the front are trained again where replicates are wanted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from vitnas.config.baseline import PricedBaseline
from vitnas.config.data import DataConfig
from vitnas.config.notation import human
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.cache import Cache
from vitnas.engine.batch.references import FILE_NAME
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.watch.interrupts import two_step_interrupt
from vitnas.run import Run
from vitnas.seeds import derive_seed
from vitnas.sessions import Data
from vitnas.versus import counting

_Answers = Callable[[Iterable[Request]], Iterator[tuple[Request, Answer]]]


def train_baselines(
    path: Path,
    requests: Mapping[Request, PricedBaseline],
    answers: _Answers,
    cache: Cache,
    *,
    notice: Callable[[str], None],
    ended: Callable[[str], None],
    doing: Callable[[str], None],
    again: bool = False,
) -> None:
    """Train what the run does not have yet; each result is in its file before the next is told.

    Args:
        path: the run's folder.
        requests: see `requests_for`.
        answers: of the back end; not called where nothing is left to train.
        cache: what other runs found.
        notice: told what happens on Ctrl-C.
        ended: told of each result.
        doing: told what begins, if anything does.
        again: whether these are further trainings of baselines.

    Raises:
        KeyboardInterrupt: Ctrl-C, once what was running has ended, or at once the second time.
        RunError: the run's file is damaged.
    """
    book = Book(path / FILE_NAME)
    called, why = ("repeat", " again, with other seeds") if again else ("baseline", "")
    told = _Told(called, len(requests), len(requests) - len(book.missing(requests)), ended)

    def keep(request: Request, answer: Answer, taken: bool = False) -> None:
        member = requests[request]
        costs = {"flops": member.flops, "num_params": member.num_params}
        answer = answer.model_copy(update=costs)
        book.put(request, answer, taken)
        told(member, answer)

    for request in book.missing(requests):
        if (known := cache.get(request)) is not None:
            keep(request, known, taken=True)
    if not (missing := book.missing(requests)):
        return
    doing(f"training {len({requests[one] for one in missing})} baselines{why}")
    with _until_interrupted(missing, notice) as asked:
        for request, answer in answers(asked):
            keep(request, answer)
            cache.put(request, answer)
    if book.missing(requests):
        raise KeyboardInterrupt


def requests_for(
    members: Iterable[PricedBaseline],
    proxy: ProxyConfig,
    seed: int,
    repetition: int = 0,
    int8: bool = False,
) -> dict[Request, PricedBaseline]:
    """The training of each baseline of a run with this seed, scored on the test images, too.

    Args:
        members: the baselines.
        proxy: how they are trained.
        seed: of the run.
        repetition: from 1 on, with another seed for each.
        int8: see `Request`.
    """
    again = (repetition,) if repetition else ()

    def request(member: PricedBaseline) -> Request:
        own = derive_seed(seed, member.baseline.key, *again)
        return Request(member.baseline, proxy, own, test=True, int8=int8)

    return {request(member): member for member in members}


def repeat_what_counts(
    members: Sequence[PricedBaseline],
    read: Callable[[], Run],
    train: Callable[[Sequence[PricedBaseline]], None],
) -> None:
    """Train those baselines again that decide the comparison with the front.

    A baseline's value is the mean over its trainings, so other ones may count afterwards, and are
    then trained again, too, until nothing new counts. Who counts in a round is computed from whole
    rounds alone. So a run that was stopped anywhere resumes as if it had not been.

    Args:
        members: all baselines.
        read: reads the run as it is now.
        train: trains baselines again as often as is wanted; what is there already is not trained.
    """
    known: set[tuple[str, int]] = set()
    while new := _counting(read(), known) - known:
        train([one for one in members if (one.baseline.family, one.baseline.width) in new])
        known |= new


def _counting(run: Run, known: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
    """Family and width of what counts where only those that are `known` have replicates."""
    seen = (
        one if (one.family, one.width) in known else replace(one, replicates=(), test_replicates=())
        for one in run.baselines
    )
    return {(one.family, one.width) for one in counting(replace(run, baselines=tuple(seen)))}


@contextmanager
def _until_interrupted(
    requests: Iterable[Request], notice: Callable[[str], None]
) -> Iterator[Iterator[Request]]:
    """The requests, no more of them after the first Ctrl-C."""

    def wind_down() -> None:
        notice("finishing the baselines that are running; Ctrl-C again stops now")

    with two_step_interrupt(wind_down) as heard:
        yield takewhile(lambda request: not heard, requests)


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
        called: what each is.
        number: of all.
        done: before this session.
        notice: where the lines go.
    """

    def __init__(self, called: str, number: int, done: int, notice: Callable[[str], None]) -> None:
        self._called, self._number, self._done, self._notice = called, number, done, notice

    def __call__(self, member: PricedBaseline, answer: Answer) -> None:
        self._done += 1
        reached = "" if answer.top1 is None else f"{answer.top1:6.2f} %"
        place = f"[{self._called} {self._done:>{len(str(self._number))}}/{self._number}]"
        line = f"{place} {member.baseline.name:<14} {answer.outcome.value:<9} {reached:>8} "
        line += f"{human(member.flops):>7} FLOPs"
        self._notice(line if answer.error is None else f"{line}  {answer.error}")
