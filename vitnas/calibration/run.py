"""A calibration from the space to its files: plan, trainings, figures. The same call resumes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vitnas.calibration.judge import judge
from vitnas.calibration.options import CalibrationOptions
from vitnas.calibration.plan import CalibrationPlan, ImageHW, make_plan
from vitnas.calibration.result import Calibration
from vitnas.calibration.write import write_calibration
from vitnas.config.differences import with_defaults
from vitnas.config.space import SearchSpace
from vitnas.data.telling import Tell, Teller
from vitnas.durations import clock, span
from vitnas.engine.backends.backend import Backend, open_backend, opening
from vitnas.engine.backends.prepare import Findings
from vitnas.engine.batch.book import Book, images_name
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.store.folder import check_folder, in_use, is_locked, locked, make_folder
from vitnas.environment import session_facts
from vitnas.errors import RunError, reason_of
from vitnas.files import exists, read_bytes, write_text
from vitnas.words import plural

PLAN_FILE = "plan.json"
BOOK_FILE = "trainings.jsonl"
_MOST_BYTES = 1 << 26


def run_calibration(
    space: SearchSpace,
    out: str | Path,
    options: CalibrationOptions,
    notice: Tell = lambda line: None,
) -> Calibration:
    """Train what a calibration takes and judge the proxies of `space`.

    Args:
        space: its proxy is calibrated.
        out: the folder; new, empty, or of a calibration of the same space. Trainings that it holds
            are not done again.
        options: how.
        notice: told what is done, a line a training.

    Raises:
        ConfigError: the space has fewer networks, or the long training is not longer.
        RunError: the folder holds something else; no cluster answers; too few networks can be
            trained.
        DataError, DeviceError: as of a search.
        KeyboardInterrupt: Ctrl-C; what has ended is kept.
    """
    path = Path(out)
    check_folder(path, PLAN_FILE)
    _refuse_other(path, space)
    if is_locked(path):
        raise in_use(path)
    plan = make_plan(space, options)
    notice(opening(options))
    backend = open_backend(options, space.config.data)
    try:
        notice(f"reading the images of {space.config.data.called}")
        found = backend.prepare(_WithSizes(space, plan.image_sizes), teller=Teller(notice))
        make_folder(path)
        with locked(path):
            write_text(path / PLAN_FILE, json.dumps({"space": space.to_tree()}, indent=2) + "\n")
            for line in (*found.notices, *plan.notices):
                notice(line)
            book = Book(path / BOOK_FILE, images_name(space.config.data, found.data))
            _train(plan, book, backend, found, notice)
            result = judge(plan, book.get, space.to_tree(), found.data)
            facts = session_facts(workers=backend.resources.workers, device=found.device)
            result = result.model_copy(update={"session": facts})
            write_calibration(result, path)
    finally:
        backend.close()
    return result


class _WithSizes(SearchSpace):
    """The same space, whose images are read at more sizes."""

    def __init__(self, space: SearchSpace, sizes: Iterable[ImageHW]) -> None:
        self._more = tuple(sizes)
        super().__init__(space.config, space.file)

    def image_sizes(self) -> tuple[ImageHW, ...]:
        return tuple(dict.fromkeys((*super().image_sizes(), *self._more)))


def _train(
    plan: CalibrationPlan, book: Book, backend: Backend, found: Findings, notice: Tell
) -> None:
    """Do the trainings that the book does not have."""
    names = {request.key: name for name, request in plan.requests()}
    requests = [request for _, request in plan.requests()]
    left = book.missing(requests)
    kept = len(names) - len(left)
    if left:
        notice(_starting(plan, left, kept, backend.resources.workers, found))
    started, to_do, done = time.monotonic(), sum(map(_epochs, left)), 0.0
    for number, (request, answer) in enumerate(backend.answers(left), start=kept + 1):
        book.put(request, answer)
        done += _epochs(request)
        seconds = (time.monotonic() - started) * (to_do - done) / done
        reached = _reached(answer)
        notice(f"[{number}/{len(names)}] {names[request.key]}: {reached}  ({clock(seconds)} left)")


def _starting(
    plan: CalibrationPlan, left: list[Request], kept: int, workers: int, found: Findings
) -> str:
    """How many trainings there are, and about how long all of them take."""
    networks = plural(len(plan.networks), "network")
    text = f"{plural(len(left), 'training')} of {networks} on {plural(workers, 'worker')}"
    text += f"; {kept} {'is' if kept == 1 else 'are'} kept" if kept else ""
    if not found.training_seconds:
        return text
    proxy = plan.fidelities[0].proxy
    each = found.training_seconds / (proxy.epochs * proxy.train_fraction)
    return f"{text}; about {span(each * sum(map(_epochs, left)) / min(workers, len(left)))} in all"


def _epochs(request: Request) -> float:
    """What a training costs, in epochs over all images; a rough guess."""
    if request.zero_cost:
        return 0.1
    return request.proxy.epochs * request.proxy.train_fraction


def _reached(answer: Answer) -> str:
    if answer.error is not None:
        return answer.error
    return f"{answer.curve[-1]:.2f} %" if answer.curve else plural(len(answer.scores), "number")


def _refuse_other(path: Path, space: SearchSpace) -> None:
    """Refuse the folder of a calibration of another space.

    Raises:
        RunError: it is one, or cannot be read.
    """
    file = path / PLAN_FILE
    if not exists(file):
        return
    try:
        stored: Any = json.loads(read_bytes(file, _MOST_BYTES))["space"]
        name = stored["name"]
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {reason_of(error)}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RunError(f"{file}: is not the plan of a calibration; give a new folder") from None
    if with_defaults(stored) != space.to_tree():
        what = f"space {name}" if name != space.name else f"another version of space {name}"
        raise RunError(f"{path}: holds a calibration of {what}; give a new folder")
