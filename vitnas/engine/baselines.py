"""The baselines of a run: trained after its trials, on the same images in the same way, but each
family at a learning rate of its own. Those that decide its comparison with the front find their own
rate, each by itself, and are trained again where replicates are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

from vitnas.config.baseline import PricedBaseline
from vitnas.config.data import DataConfig
from vitnas.config.notation import human
from vitnas.config.training import ProxyConfig
from vitnas.data.telling import Tell
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.cache import Cache
from vitnas.engine.batch.rates import best_rate, pilot, said_of, untried, within_reach
from vitnas.engine.batch.references import FILE_NAME, read_baselines
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.watch.interrupts import two_step_interrupt
from vitnas.engine.watch.watcher import Watcher
from vitnas.records import BaselineRecord, Outcome
from vitnas.run import Run
from vitnas.seeds import derive_seed
from vitnas.sessions import Data
from vitnas.versus import contending, counting
from vitnas.words import plural

_Answers = Callable[[Iterable[Request]], Iterator[tuple[Request, Answer]]]
_Asked = dict[Request, PricedBaseline]  # what each training is of


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
        watcher: told of each result, what begins, if anything does, and what happens on Ctrl-C.
        int8: see `Request`.
    """

    path: Path
    members: Sequence[PricedBaseline]
    proxy: ProxyConfig
    seed: int
    answers: _Answers
    cache: Cache
    watcher: Watcher
    int8: bool = False
    _heard: list[float] = field(default_factory=list, init=False)  # when Ctrl-C has come, if ever

    def train(self, read: Callable[[], Run], repeats: int = 0) -> None:
        """Train what the run does not have yet.

        First each family finds its learning rate with one member, and all members are trained at
        it; one that diverges at it finds its own. Then those that decide the comparison with the
        front, and those of the next best families, climb on from there, each by itself: a rate that
        does not suit one may have made it the second best. Those that decide are repeated. A
        baseline's value is that at its best rate, the mean over its trainings. So other ones may
        decide afterwards; the same is done with them, until nothing new decides.

        Who decides is computed from what was asked for so far, even if the run has more. So a run
        that was stopped anywhere resumes as if it had not been.

        Args:
            read: reads the run as it is now.
            repeats: how often each that decides is trained again, with other seeds, at its own
                rate.

        Raises:
            KeyboardInterrupt: Ctrl-C, once what was running has ended, or at once the second time.
            RunError: the run's file is damaged.
        """
        asked = self._families()
        climbed: set[PricedBaseline] = set()
        repeated: set[PricedBaseline] = set()
        while True:
            while new := self._those_of(contending, read(), asked, climbed):
                asked |= self._climb({one: self._family_rate(one) for one in new})
                climbed.update(new)
            if not (new := self._those_of(counting, read(), asked, repeated)):
                break
            again = {
                self._request(one, self._best(one), repetition): one
                for repetition in range(1, repeats + 1)
                for one in new
            }
            self._answer(again, "repeat", " again, with other seeds")
            asked |= again
            repeated.update(new)

    @cached_property
    def _book(self) -> Book:
        return Book(self.path / FILE_NAME)

    def _families(self) -> _Asked:
        """All members at the rates of their families, and the trainings that found these rates."""
        pilots = dict.fromkeys(map(self._pilot, self.members), self.proxy.lr)
        asked = self._climb(pilots)
        whole = {self._request(one, self._family_rate(one)): one for one in self.members}
        self._answer(whole, "baseline")
        return asked | whole | self._climb(self._diverged(whole))

    def _diverged(self, whole: _Asked) -> dict[PricedBaseline, float]:
        """Those that diverge at the rate that their family has found, with it."""
        lost = {
            one: request.proxy.lr
            for request, one in whole.items()
            if (answer := self._book.get(request)) and answer.outcome is Outcome.DIVERGED
        }
        return {one: lr for one, lr in lost.items() if self._pilot(one) not in lost}

    def _climb(self, starts: Mapping[PricedBaseline, float]) -> _Asked:
        """Train each of some baselines at the rates that lead from its start to its best one."""
        asked: _Asked = {}
        while missing := {
            self._request(one, lr): one
            for one, start in starts.items()
            for lr in untried(self._tried(one), start, self.proxy.lr)
        }:
            self._answer(missing, "rate", " at several learning rates")
        for one in starts:
            asked |= {self._request(one, lr): one for lr in self._tried(one)}
        return asked

    def _those_of(
        self,
        chosen: Callable[[Run], list[BaselineRecord]],
        run: Run,
        asked: _Asked,
        but: set[PricedBaseline],
    ) -> list[PricedBaseline]:
        """The members that are chosen by the trainings that were asked for so far, but some."""
        seen = read_baselines(self.path, {request.key for request in asked})
        names = {(one.family, one.width) for one in chosen(replace(run, baselines=seen))}
        own = ((one.baseline.family, one.baseline.width) for one in self.members)
        there = [one for one, name in zip(self.members, own, strict=True) if name in names]
        return [one for one in there if one not in but]

    def _pilot(self, one: PricedBaseline) -> PricedBaseline:
        family = one.baseline.family
        return pilot([other for other in self.members if other.baseline.family == family])

    def _family_rate(self, one: PricedBaseline) -> float:
        return self._best(self._pilot(one))

    def _best(self, one: PricedBaseline) -> float:
        return best_rate(self._tried(one))

    def _request(self, member: PricedBaseline, lr: float, repetition: int = 0) -> Request:
        """A training that is scored on the test images, too; from 1 on repetitions have seeds of
        their own."""
        again = (repetition,) if repetition else ()
        seed = derive_seed(self.seed, member.baseline.key, *again)
        return Request(member.baseline, self.proxy.at_rate(lr), seed, test=True, int8=self.int8)

    def _tried(self, one: PricedBaseline) -> dict[float, float | None]:
        """What trainings say of their learning rates, of those that the run has; see `said_of`."""
        asked = {lr: self._request(one, lr) for lr in within_reach(self.proxy.lr)}
        found = {lr: self._book.get(request) for lr, request in asked.items()}
        return {lr: said_of(a.outcome, a.top1) for lr, a in found.items() if a is not None}

    def _answer(
        self, requests: Mapping[Request, PricedBaseline], called: str, how: str = ""
    ) -> None:
        """Train what the run does not have yet.

        Args:
            requests: the trainings, each with what is trained.
            called: what each is, for the lines that tell of them.
            how: the end of the sentence that tells what begins.
        """
        book = self._book
        done = len(requests) - len(book.missing(requests))
        told = _Told(called, len(requests), done, self.watcher.ended)

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
        if not self._heard:
            what = plural(len({requests[one] for one in missing}), "baseline")
            self.watcher.doing(f"training {what}{how}")
            with two_step_interrupt(self._wind_down) as heard:
                for request, answer in self.answers(takewhile(lambda _: not heard, missing)):
                    keep(request, answer)
                    self.cache.put(request, answer)
            self._heard.extend(heard)
        if book.missing(requests):
            raise KeyboardInterrupt

    def _wind_down(self) -> None:
        self.watcher.notice("finishing the baselines that are running; Ctrl-C again stops now")


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

    def __init__(self, called: str, number: int, done: int, notice: Tell) -> None:
        self._called, self._number, self._done, self._notice = called, number, done, notice

    def __call__(self, request: Request, member: PricedBaseline, answer: Answer) -> None:
        self._done += 1
        reached = "" if answer.top1 is None else f"{answer.top1:6.2f} %"
        place = f"[{self._called} {self._done:>{len(str(self._number))}}/{self._number}]"
        line = f"{place} {member.baseline.name:<14} {answer.outcome.value:<9} {reached:>8} "
        line += f"{human(member.flops):>7} FLOPs  lr {request.proxy.lr:g}"
        self._notice(line if answer.error is None else f"{line}  {answer.error}")
