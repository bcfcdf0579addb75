"""How far a search is, as its controller tells it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.engine.conftest import start, train, train_some
from tests.engine.decide.conftest import Make
from tests.report.runs import run_of
from tests.test_run import FEW_IMAGES, rising
from vitnas.engine.store.study import read_run
from vitnas.engine.watch.progress import Progress
from vitnas.records import Outcome, TrialRecord

DONE = TrialRecord(0, outcome=Outcome.COMPLETE, key="a", flops=10, curve=(50.0,))


def told(*events: tuple[str, TrialRecord]) -> Progress:
    progress = Progress(9, 1, ("flops",))
    for event, trial in events:
        progress.listen(event, trial)
    return progress


def test_trainings_are_counted_when_they_end(controller_of: Make, tmp_path: Path) -> None:
    progress = Progress(9, 3, ("flops",))
    controller = controller_of(num_trials=9, listener=progress.listen)
    train_some(controller, 3)
    job = start(controller)
    assert (progress.num_ended, [t.number for t in progress.running()]) == (3, [job.number])
    train(controller, job)
    assert (progress.num_ended, progress.running()) == (4, [])
    assert [t.number for t in progress.front] == [t.number for t in read_run(tmp_path).front]


def test_earlier_sessions_count_and_what_was_taken_over_does_not() -> None:
    progress = told(("known", DONE), ("known", replace(DONE, number=1, taken=True, curve=(60.0,))))
    assert progress.num_ended == 1
    assert [trial.number for trial in progress.front] == [1], "it is on the front all the same"


def test_replicates_are_counted_by_themselves_and_move_the_front() -> None:
    other = replace(DONE, number=1, key="b", curve=(51.0,))
    progress = told(("end", DONE), ("end", other))
    assert [trial.number for trial in progress.front] == [1]
    progress.listen("end", replace(DONE, number=2, replicate_of=0, curve=(90.0,)))
    assert (progress.num_ended, progress.num_replicates) == (2, 1)
    assert [trial.number for trial in progress.front] == [0]


def test_refused_and_duplicate_candidates_are_no_trainings() -> None:
    progress = told(
        ("end", replace(DONE, outcome=Outcome.REFUSED, curve=())),
        ("end", replace(DONE, number=1, outcome=Outcome.DUPLICATE, curve=())),
    )
    assert (progress.num_ended, progress.front) == (0, ())


def test_what_is_done_between_trainings_ends_with_the_first_epoch() -> None:
    progress = told()
    progress.doing = "reading the images"
    running = replace(DONE, outcome=Outcome.RUNNING, curve=())
    progress.listen("start", running)
    assert progress.doing
    progress.listen("epoch", replace(running, curve=(40.0,)))
    assert not progress.doing


def test_the_front_so_far_goes_by_expected_top1(tmp_path: Path) -> None:
    run = run_of(tmp_path, *rising(20, lucky=4), environment=FEW_IMAGES)
    progress = Progress(20, 1, ("flops",))
    progress.num_images = 400
    for one in run.trials:
        progress.listen("known", one)
    assert [t.number for t in progress.front] == [t.number for t in run.front]
