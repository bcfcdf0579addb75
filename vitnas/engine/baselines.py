"""The baselines of a run: trained after its trials, on the same images in the same way, but each
family at a learning rate of its own; those that decide its comparison with the front are trained
again where replicates are wanted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from vitnas.config.baseline import PricedBaseline
from vitnas.config.data import DataConfig
from vitnas.config.notation import human
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.cache import Cache
from vitnas.engine.batch.rates import best_rate, pilot, untried, within_reach
from vitnas.engine.batch.references import FILE_NAME
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.watch.interrupts import two_step_interrupt
from vitnas.records import BaselineRecord
from vitnas.run import Run
from vitnas.seeds import derive_seed
from vitnas.sessions import Data
from vitnas.versus import counting
from vitnas.words import plural

_Answers = Callable[[Iterable[Request]], Iterator[tuple[Request, Answer]]]
_Notice = Callable[[str], None]
_Counted = tuple[str, int, float]  # family, width and learning rate


@dataclass(frozen=True)
class Baselines:
    """The baselines of a run; each result is in its file before the next is told.

    Attributes:
        path: the run's folder.
        members: of all families.
        proxy: the recipe of the run's trials.
        seed: of the run. A training's own seed is from it and the baseline's key.
        answers: of the back end; not called where nothing is left to train.
        cache: what other runs found.
        notice: told what happens on Ctrl-C.
        ended: told of each result.
        doing: told what begins, if anything does.
        int8: see `Request`.
    """

    path: Path
    members: Sequence[PricedBaseline]
    proxy: ProxyConfig
    seed: int
    answers: _Answers
    cache: Cache
    notice: _Notice
    ended: _Notice
    doing: _Notice
    int8: bool = False

    def train(self) -> None:
        """Find each family's learning rate with one of its members, then train all at it.

        What the run has already is not trained.

        Raises:
            KeyboardInterrupt: Ctrl-C, once what was running has ended, or at once the second time.
            RunError: the run's file is damaged.
        """
        families = [list(group) for _, group in groupby(self.members, key=_family)]
        pilots = [pilot(family) for family in families]
        while missing := self._untried(pilots):
            self._answer(missing, "rate", " at several learning rates")
        asked: dict[Request, PricedBaseline] = {}
        for family, one in zip(families, pilots, strict=True):
            lr = best_rate(self._tried(one))
            asked |= {self._request(member, lr): member for member in family}
        self._answer(asked, "baseline")

    def repeat(self, times: int, read: Callable[[], Run]) -> None:
        """Train those baselines again that decide the comparison with the front.

        A baseline's value is the mean over its trainings, so other ones may count afterwards, and
        are then trained again, too, until nothing new counts. Who counts in a round is computed
        from whole rounds alone. So a run that was stopped anywhere resumes as if it had not been.

        Args:
            times: how often each is trained again, with other seeds, at its own learning rate.
            read: reads the run as it is now.

        Raises:
            KeyboardInterrupt, RunError: as `train`.
        """
        known: set[_Counted] = set()
        while new := _counting(read(), known) - known:
            rates = {(family, width): lr for family, width, lr in new}
            asked = {
                self._request(member, lr, repetition): member
                for repetition in range(1, times + 1)
                for member in self.members
                if (lr := rates.get((member.baseline.family, member.baseline.width))) is not None
            }
            self._answer(asked, "repeat", " again, with other seeds")
            known |= new

    def _request(self, member: PricedBaseline, lr: float, repetition: int = 0) -> Request:
        """A training that is scored on the test images, too; from 1 on repetitions have seeds of
        their own."""
        again = (repetition,) if repetition else ()
        seed = derive_seed(self.seed, member.baseline.key, *again)
        return Request(member.baseline, self.proxy.at_rate(lr), seed, test=True, int8=self.int8)

    def _tried(self, one: PricedBaseline) -> dict[float, float | None]:
        """Top-1 on the scoring images by learning rate, of those that the run has."""
        book = Book(self.path / FILE_NAME)
        asked = {lr: self._request(one, lr) for lr in within_reach(self.proxy.lr)}
        found = {lr: book.get(request) for lr, request in asked.items()}
        return {lr: answer.top1 for lr, answer in found.items() if answer is not None}

    def _untried(self, pilots: Iterable[PricedBaseline]) -> dict[Request, PricedBaseline]:
        """The next learning rates of each family; none once all are found."""
        own = self.proxy.lr
        return {
            self._request(one, lr): one for one in pilots for lr in untried(self._tried(one), own)
        }

    def _answer(
        self, requests: Mapping[Request, PricedBaseline], called: str, how: str = ""
    ) -> None:
        """Train what the run does not have yet.

        Args:
            requests: the trainings, each with what is trained.
            called: what each is, for the lines that tell of them.
            how: the end of the sentence that tells what begins.
        """
        book = Book(self.path / FILE_NAME)
        done = len(requests) - len(book.missing(requests))
        told = _Told(called, len(requests), done, self.ended)

        def keep(request: Request, answer: Answer, taken: bool = False) -> None:
            member = requests[request]
            costs = {"flops": member.flops, "num_params": member.num_params}
            answer = answer.model_copy(update=costs)
            book.put(request, answer, taken)
            told(request, member, answer)

        for request in book.missing(requests):
            if (known := self.cache.get(request)) is not None:
                keep(request, known, taken=True)
        if not (missing := book.missing(requests)):
            return
        self.doing(f"training {plural(len({requests[one] for one in missing}), 'baseline')}{how}")
        with _until_interrupted(missing, self.notice) as asked:
            for request, answer in self.answers(asked):
                keep(request, answer)
                self.cache.put(request, answer)
        if book.missing(requests):
            raise KeyboardInterrupt


def _family(member: PricedBaseline) -> str:
    return member.baseline.family


def _counting(run: Run, known: Collection[_Counted]) -> set[_Counted]:
    """What counts where only those that are `known` have replicates."""

    def named(one: BaselineRecord) -> _Counted:
        return one.family, one.width, one.lr

    seen = (
        one if named(one) in known else replace(one, replicates=(), test_replicates=())
        for one in run.baselines
    )
    return {named(one) for one in counting(replace(run, baselines=tuple(seen)))}


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

    def __call__(self, request: Request, member: PricedBaseline, answer: Answer) -> None:
        self._done += 1
        reached = "" if answer.top1 is None else f"{answer.top1:6.2f} %"
        place = f"[{self._called} {self._done:>{len(str(self._number))}}/{self._number}]"
        line = f"{place} {member.baseline.name:<14} {answer.outcome.value:<9} {reached:>8} "
        line += f"{human(member.flops):>7} FLOPs  lr {request.proxy.lr:g}"
        self._notice(line if answer.error is None else f"{line}  {answer.error}")
