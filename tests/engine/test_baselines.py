"""A run's baselines: trained after its trials, resumed, reused, and in nobody's way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
from PIL import Image

from tests.engine.conftest import make_space
from tests.engine.test_search import folder_space
from tests.report.runs import run_of, trial
from vitnas.baselines.sizes import line_up
from vitnas.config.baseline import Baseline, PricedBaseline
from vitnas.config.training import ProxyConfig
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.baselines import Baselines, shared_cache
from vitnas.engine.batch.book import read_entries
from vitnas.engine.batch.cache import Cache
from vitnas.engine.batch.references import FILE_NAME, read_baselines
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.store.study import read_run
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import RunError
from vitnas.records import BaselineRecord, Outcome, TrialRecord
from vitnas.report.verdict import finishing_command
from vitnas.run import Run
from vitnas.sessions import Data
from vitnas.versus import counting, versus

Answers = Callable[[Iterable[Request]], Iterator[tuple[Request, Answer]]]
SPACE = make_space()
PROXY = SPACE.config.proxy
OPTIONS = SearchOptions(trials=1, gpus_per_trial=0.0, backend="serial")
EPOCHS = PROXY.epochs
DONE = Answer(
    outcome=Outcome.COMPLETE, curve=(50.0,) * EPOCHS, losses=(1.0,) * EPOCHS, test_top1=40.0
)


@cache
def members(count: int = 4) -> tuple[PricedBaseline, ...]:
    return line_up(SPACE, count).members


def instantly(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
    for request in requests:
        yield request, DONE


def never(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
    raise AssertionError(f"{list(requests)} are trained again")


def baselines(
    path: Path,
    answers: Answers = instantly,
    cache: Cache | None = None,
    told: list[str] | None = None,
    some: Sequence[PricedBaseline] = (),
    proxy: ProxyConfig = PROXY,
) -> Baselines:
    """Those of a run with seed 0, whose lines go to `told`."""
    tell = [] if told is None else told
    return Baselines(
        path,
        some or members(),
        proxy,
        0,
        answers,
        cache or Cache(None),
        Watcher(notice=tell.append, ended=tell.append),
    )


def nothing_to_compare() -> Run:
    return run_of(Path())


def train(path: Path, cache: Cache, answers: Answers = instantly) -> list[str]:
    told: list[str] = []
    baselines(path, answers, cache, told).train(nothing_to_compare)
    return told


@pytest.mark.slow
def test_a_search_trains_its_baselines_apart_from_its_trials(tmp_path: Path) -> None:
    told: list[str] = []
    run = run_search(
        SPACE,
        tmp_path / "run",
        OPTIONS,
        Watcher(ended=told.append, searched=lambda: told.append("all trials have ended")),
    )
    assert told.index("all trials have ended") == 0
    entries = read_entries(tmp_path / "run" / FILE_NAME)
    assert (len(run.trials), run.num_baselines) == (1, 4)
    assert {entry.answer.flops for entry in entries} == {member.flops for member in members()}
    for entry in entries:
        assert len(entry.answer.curve) == PROXY.epochs
        assert entry.answer.test_top1 is not None
    assert max(entry.answer.curve[-1] for entry in entries) > 60  # chance is 10
    assert sum(line.startswith("[rate ") for line in told) == len(entries) - 3
    assert sum(line.startswith("[baseline ") for line in told) == 3
    first, second = list[str](), list[str]()
    file, gone = tmp_path / "run" / FILE_NAME, {one.width for one in run.baselines[2:]}
    lines = zip(entries, file.read_text().splitlines(keepends=True), strict=True)
    kept = [line for one, line in lines if one.request["baseline"]["width"] not in gone]
    file.write_text("".join(kept))
    run_search(SPACE, tmp_path / "run", OPTIONS, Watcher(doing=first.append))
    run_search(SPACE, tmp_path / "run", OPTIONS, Watcher(doing=second.append, searched=pytest.fail))
    assert any("the trial has ended, then 2 baselines" in line for line in first)
    assert "the trial has ended" in second, "nothing follows"


@pytest.mark.slow
def test_replicates_are_of_both_sides_of_the_comparison(tmp_path: Path) -> None:
    """Every training of what is compared is scored on the test images."""
    run = run_search(SPACE, tmp_path, replace(OPTIONS, trials=2, replicates=1))
    found = versus(run)
    assert found is not None
    assert found.on_test
    assert found.trainings == (2, 2)
    assert found.degrees is not None
    members = [*run.front, *counting(run)]
    assert [len(one.test_trainings) for one in members] == [2] * len(members)
    assert len({one.test_top1 for one in members} - {None}) > 1
    assert sum(bool(one.replicates) for one in run.baselines) == len(counting(run))


@pytest.mark.slow
def test_three_images_a_class_are_enough(tmp_path: Path) -> None:
    """Two to train on and one to score with."""
    for index in range(9):
        folder = tmp_path / "data" / "train" / f"class{index % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (20 * index, 0, 0)).save(folder / f"{index}.png")
    space = folder_space(tmp_path / "data")
    found = run_search(space, tmp_path / "run", OPTIONS).baselines
    assert {one.outcome for one in found} == {Outcome.COMPLETE}
    assert [one.test_top1 for one in found] == [None] * 4


@pytest.mark.slow
def test_no_baselines_where_none_are_wanted(tmp_path: Path) -> None:
    options = SearchOptions(trials=1, gpus_per_trial=0.0, backend="serial", baselines=False)
    run_search(SPACE, tmp_path / "run", options)
    assert not (tmp_path / "run" / FILE_NAME).exists()


def test_the_first_ctrl_c_keeps_what_is_done_and_a_resume_trains_the_rest(tmp_path: Path) -> None:
    def interrupted(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        for number, request in enumerate(requests):
            if number == 1:
                os.kill(os.getpid(), signal.SIGINT)
            yield request, DONE

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, Cache(None), interrupted)
    assert len(read_entries(tmp_path / FILE_NAME)) == 2
    told = train(tmp_path, Cache(None))
    assert [line[:14].strip() for line in told] == [
        "[rate 1/1] vgg",
        *(f"[baseline {number}/4]" for number in (2, 3, 4)),
    ]
    assert len({entry.key for entry in read_entries(tmp_path / FILE_NAME)}) == 6
    assert train(tmp_path, Cache(None), never) == []


@pytest.mark.parametrize(("at", "expected"), [(2, 3), (5, 6)], ids=["of a step", "of all"])
def test_ctrl_c_in_the_last_training_of_a_step_ends_the_session(
    at: int, expected: int, tmp_path: Path
) -> None:
    """No step was left unfinished, so the next one had begun all the same."""
    numbers = iter(range(99))

    def interrupted(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        for request in requests:
            if next(numbers) == at:
                os.kill(os.getpid(), signal.SIGINT)
            yield request, DONE

    with nullcontext() if expected == 6 else pytest.raises(KeyboardInterrupt):
        train(tmp_path, Cache(None), interrupted)
    assert len(read_entries(tmp_path / FILE_NAME)) == expected


@pytest.mark.slow
def test_a_ctrl_c_among_the_last_trials_leaves_the_baselines_to_a_resume(tmp_path: Path) -> None:
    """All trials had ended, so the search went on with its baselines for minutes."""

    def interrupt(event: str, trial: TrialRecord) -> None:
        if event == "epoch" and trial.epochs == 1:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_search(SPACE, tmp_path, OPTIONS, Watcher(listener=interrupt))
    stopped = read_run(tmp_path)
    assert (len(stopped.complete), stopped.baselines) == (1, ())
    assert stopped.environment.last.ended_by == "interrupted"
    assert len(run_search(SPACE, tmp_path, OPTIONS).baselines) == 4


@pytest.mark.slow
def test_a_run_that_is_stopped_among_its_baselines_keeps_that_they_are_not_done(
    tmp_path: Path,
) -> None:
    """All had been trained, but some had still to find their own rate, and nothing told so."""
    lines: list[str] = []

    def interrupt(line: str) -> None:
        if line.startswith("[rate ") and any(one.startswith("[baseline ") for one in lines):
            os.kill(os.getpid(), signal.SIGINT)
        lines.append(line)

    with pytest.raises(KeyboardInterrupt):
        run_search(SPACE, tmp_path, OPTIONS, Watcher(ended=interrupt))
    stopped = read_run(tmp_path)
    assert len(stopped.baselines) == stopped.num_baselines
    assert stopped.environment.last.baselines_done is False
    assert finishing_command(stopped) == stopped.environment.last.command
    done = run_search(SPACE, tmp_path, OPTIONS)
    assert done.environment.last.baselines_done is True
    assert finishing_command(done) == ""


def by_seed(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
    """Top-1 that differs by up to 20 points from seed to seed, and by a few between families."""
    for request in requests:
        is_plain = isinstance(request.subject, Baseline) and request.subject.family == "dwcnn"
        top1 = 50 + request.seed % 1000 / 50 + 3 * is_plain
        yield request, DONE.model_copy(update={"curve": (top1,) * EPOCHS, "test_top1": top1})


class Stopped:
    """Answers by seed that end for good after some."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        for pair in by_seed(requests):
            if not self.left:
                return
            self.left -= 1
            yield pair


class Repeats:
    """A run of two trials and its baselines, of which `times` more trainings are wanted."""

    def __init__(self, path: Path, times: int = 2) -> None:
        self.path, self.times, self.rounds = path, times, 0

    def read(self) -> Run:
        self.rounds += 1
        ends = trial(0, 55.0, 1_000, test_top1=55.0), trial(1, 50.0, 10_000_000)
        return run_of(self.path, *ends, baselines=read_baselines(self.path))

    def run(self, answers: Answers = by_seed) -> tuple[BaselineRecord, ...]:
        baselines(self.path, by_seed, some=members(12)).train(nothing_to_compare)
        baselines(self.path, answers, some=members(12)).train(self.read, self.times)
        return tuple(replace(one, ended=None) for one in self.read().baselines)


@pytest.mark.slow
def test_what_decides_the_comparison_is_trained_again_and_nothing_else(tmp_path: Path) -> None:
    repeats = Repeats(tmp_path)
    found = repeats.run()
    numbers = {(one.family, one.width): len(one.trainings) for one in found}
    assert set(numbers.values()) == {1, 3}
    assert all(len(one.trainings) == 3 for one in counting(repeats.read()))
    for one in found:
        assert len(one.test_trainings) == len(one.trainings)
        assert one.top1 == pytest.approx(fmean(one.trainings))
    entries = read_entries(tmp_path / FILE_NAME)
    seeds = [(entry.request["seed"], entry.request["proxy"]["lr"]) for entry in entries]
    further = sum(len(one.rates) - 1 for one in found if one.rates)
    assert len(set(seeds)) == len(seeds) == sum(numbers.values()) + further
    assert repeats.rounds > 3, "means of three change who counts"


def test_stopped_anywhere_among_repeats_a_run_resumes_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = Repeats(tmp_path / "whole").run()
    assert whole
    for left in range(1, sum(len(one.replicates) for one in whole), 4):
        cut = Repeats(tmp_path / str(left))
        with pytest.raises(KeyboardInterrupt):
            cut.run(Stopped(left))
        assert cut.run() == whole
        assert cut.run(never) == whole, "nothing is left"


def test_another_run_takes_them_from_the_cache(tmp_path: Path) -> None:
    cache = Cache({"images": "the same"})
    train(tmp_path / "first", cache)
    assert len(train(tmp_path / "second", cache, never)) == 6
    first, second = (read_entries(tmp_path / name / FILE_NAME) for name in ("first", "second"))
    assert [entry.answer for entry in first] == [entry.answer for entry in second]
    assert {entry.taken for entry in first} == {False}
    assert {entry.taken for entry in second} == {True}


def test_a_failure_is_told_and_does_not_end_the_others(tmp_path: Path) -> None:
    def diverging(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        for request in requests:
            yield request, Answer(outcome=Outcome.DIVERGED, error="loss is nan")

    told = train(tmp_path, Cache(None), diverging)
    assert len(told) == 8, "five rates of one member, and the others"
    assert all("diverged" in line and "loss is nan" in line for line in told)


def test_a_rate_that_diverges_is_an_outcome(tmp_path: Path) -> None:
    hot = PROXY.model_copy(update={"lr": 1.0, "grad_clip": 0.0, "epochs": 1})
    backend = SerialBackend(0.0)
    backend.prepare(SPACE)
    baselines(tmp_path, backend.answers, proxy=hot).train(nothing_to_compare)
    outcomes = {entry.answer.outcome for entry in read_entries(tmp_path / FILE_NAME)}
    assert outcomes <= {Outcome.COMPLETE, Outcome.DIVERGED}


def test_a_damaged_file_names_its_line(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("{}\n")
    with pytest.raises(RunError, match=r"baselines.jsonl: line 1 is not the result"):
        train(tmp_path, Cache(None))


def test_changes_that_no_revision_names_share_nothing() -> None:
    session = {"git_revision": "abc+", "versions": {}}
    request = Request(members()[0].baseline, PROXY, 0)
    for revision, expected in (("abc+", None), ("abc", DONE), (None, DONE)):
        facts = session | {"git_revision": revision}
        cache = shared_cache(SPACE.config.data, Data(), "cpu", facts)
        cache.put(request, DONE)
        assert cache.get(request) == expected
