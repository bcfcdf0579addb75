"""Tuning from the space to the recipe: folder, back end, trainings, files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.data.telling import SILENT, Teller
from vitnas.durations import in_turns, span
from vitnas.engine.backends.backend import Backend, open_backend, opening
from vitnas.engine.backends.prepare import Findings
from vitnas.engine.batch.book import Book, images_name
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.store.folder import check_folder, locked, make_folder
from vitnas.engine.store.study import read_run
from vitnas.engine.tuning.knobs import Recipes
from vitnas.engine.tuning.networks import front_networks, varied_networks
from vitnas.engine.tuning.options import TuneOptions
from vitnas.engine.tuning.result import BOOK_FILE, Tuned, check_result, ranked, told
from vitnas.engine.tuning.tuner import Tuner
from vitnas.errors import RunError

COMPARED, OTHER_EPOCHS = 2, 2
"""Recipes that are trained again at the end, the best one and the space's own; and how often the
better of them is trained for other numbers of epochs."""


class NothingTunedError(RunError):
    """No training ended well, or there was no time for any."""


def run_tune(
    space: SearchSpace,
    out: str | Path,
    options: TuneOptions,
    teller: Teller = SILENT,
) -> Tuned:
    """Find the recipe of the space's short training; resumes what was stopped.

    Args:
        space: whose networks are trained, on its images.
        out: the folder; made if it is not there.
        options: how.
        teller: told of each recipe, and what is done.

    Returns:
        What was found, as written to the folder.

    Raises:
        RunError: the folder cannot be used, or is of another space or other images; no training
            ended well, or none in time; the run of `front_of` cannot be read, or has no front for
            these images.
        ConfigError, DataError, DeviceError: as of a search.
        KeyboardInterrupt: Ctrl-C; what had been trained is kept.
    """
    path = Path(out)
    check_folder(path, BOOK_FILE)
    space = space.for_epochs(options.epochs)
    networks = _networks_of(space, options)
    teller.doing(opening(options))
    backend = open_backend(options, space.config.data)
    try:
        teller.doing(f"reading the images of {space.config.data.called}")
        found = backend.prepare(space, teller=teller)
        for line in found.notices:
            teller.notice(line)
        make_folder(path)
        with locked(path):
            tuning = Tuning(space, path, options, backend, found, teller)
            return tuning.find(networks, epochs=True)
    finally:
        backend.close()


def tune_on(
    backend: Backend,
    found: Findings,
    space: SearchSpace,
    path: Path,
    options: TuneOptions,
    teller: Teller,
) -> Tuned:
    """As `run_tune`, on a back end that has read the images and found `found`; tries no other
    numbers of epochs."""
    networks = _networks_of(space, options)
    make_folder(path)
    with locked(path):
        return Tuning(space, path, options, backend, found, teller).find(networks)


def _networks_of(space: SearchSpace, options: TuneOptions) -> tuple[ModelConfig, ...]:
    """What recipes are tried on, cheapest first."""
    if options.front_of is None:
        return varied_networks(space, options.networks, options.seed)
    return front_networks(space, read_run(Path(options.front_of)), options.networks)


class Tuning:
    """Tuning with a back end that has read the images.

    Args:
        space: whose networks are trained.
        path: the folder of the answers and of what is found; nobody else writes there.
        options: how.
        backend: what trains.
        found: what it has found.
        teller: told of each recipe; and what is done, when it begins and after each training.
    """

    def __init__(
        self,
        space: SearchSpace,
        path: Path,
        options: TuneOptions,
        backend: Backend,
        found: Findings,
        teller: Teller,
    ) -> None:
        self._space, self._path, self._options = space, path, options
        self._backend, self._found, self._teller = backend, found, teller
        self._data, self._ended, self._most = found.data, set[str](), 0
        images = images_name(space.config.data, found.data)
        self._of = {"space": space.name, "images": images}
        check_result(path, self._of)
        self._book = Book(path / BOOK_FILE, images)
        self._seconds, self._until = 0.0, float("inf")

    def find(self, networks: Sequence[ModelConfig], epochs: bool = False) -> Tuned:
        """Try recipes on the networks, and compare the best one with the space's own again; then,
        if `epochs`, the recipe to use with other numbers of epochs, while there is time."""
        options, own = self._options, self._space.config.proxy
        num_images = round((self._data.num_train_images or 0) * own.train_fraction)
        tuner = Tuner(
            Recipes(own, self._space.config.data, num_images),
            networks,
            self._data.num_classes or 1,
            options.seed,
            self._train,
            lambda one: self._teller.notice(told(one)),
        )
        compared = COMPARED * options.seeds
        self._most = (options.trials + compared + OTHER_EPOCHS * epochs) * len(networks)
        self._tell()
        if options.minutes is not None:
            self._until = time.monotonic() + 60 * options.minutes
        tuner.run(options.trials)
        until, self._until = self._until, float("inf")
        self._refuse_nothing(tuner)
        best, images = tuner.best, self._data.num_val_images or 1
        gain = tuner.compare(best, images, options.seeds) if best.number else None
        result = Tuned(own, ranked(tuner.tried, best), gain, tuple(networks), self._seconds)
        if epochs:
            self._until = until
            others = tuner.compare_epochs(result.proxy, images)
            result = replace(result, epochs=others, seconds=self._seconds)
        result.write(self._path, self._of)
        return result

    def _refuse_nothing(self, tuner: Tuner) -> None:
        """Make sure that there is something to compare.

        Raises:
            NothingTunedError: no training ended well, or there was no time for any.
        """
        if not tuner.tried:
            raise NothingTunedError(
                f"--minutes {self._options.minutes:g}: over before the first recipes had been "
                "tried; the same command with more minutes resumes"
            )
        answers = [answer for one in tuner.tried for answer in one.answers.values()]
        if all(answer.top1 is None for answer in answers):
            raise NothingTunedError(
                f"none of {len(answers)} trainings ended well, with {len(tuner.tried)} recipes; "
                f"the first: {answers[0].error}"
            )

    def _train(self, requests: Sequence[Request]) -> Mapping[str, Answer] | None:
        """Answers from the book, and from trainings while there is time."""
        missing = self._book.missing(requests)
        self._ended |= {one.key for one in requests} - {one.key for one in missing}
        for request, answer in self._backend.answers(self._while_there_is_time(missing)):
            self._book.put(request, answer)
            self._ended.add(request.key)
            self._tell()
        if self._book.missing(requests):
            return None
        answers = {request.key: self._book.get(request) for request in requests}
        found = {key: answer for key, answer in answers.items() if answer is not None}
        self._seconds += sum(answer.seconds for answer in found.values())
        return found

    def _tell(self) -> None:
        """How many trainings have ended, of how many at most, and about how long all take."""
        text = f"tuning the recipe: {len(self._ended)} of at most {self._most} trainings"
        whole = how_long(self._most, self._found, self._backend)
        self._teller.doing(f"{text}, {whole} in all" if whole else text)

    def _while_there_is_time(self, requests: Sequence[Request]) -> Iterator[Request]:
        for request in requests:
            if time.monotonic() >= self._until:
                return
            yield request


def how_long(number: int, found: Findings, backend: Backend) -> str:
    """`about 14 min` for so many trainings; empty for none, or where the time
    of one is not known."""
    if not number or not found.training_seconds:
        return ""
    seconds = in_turns(number, found.training_seconds, backend.resources.workers)
    return f"about {span(seconds)}"
