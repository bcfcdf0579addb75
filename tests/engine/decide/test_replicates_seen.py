"""Replicates as others see them: samplers, the study, the panel, the status, what is kept."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import make_space
from tests.engine.decide.conftest import IMAGES, Make, finish_all
from vitnas.engine.decide.replicates import Replication
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.store.study import read_run
from vitnas.engine.store.weights import KeptWeights, near_front
from vitnas.engine.watch.display import Display
from vitnas.engine.watch.status import read_status, status_text
from vitnas.errors import VitnasError
from vitnas.records import Outcome, TrialRecord


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "random", "ehvi"])
def test_samplers_see_a_network_once(replicating: Make, sampler: str) -> None:
    import optuna

    controller = replicating(num_trials=6, sampler=sampler)
    finish_all(controller)
    for session in (controller, replicating(num_trials=9, sampler=sampler)):
        stored = session.store.study.get_trials(deepcopy=False)
        complete = [t for t in stored if t.state is optuna.trial.TrialState.COMPLETE]
        again = [t for t in stored if t.user_attrs["network"].get("replicate_of") is not None]
        assert again
        assert not {t.number for t in complete} & {t.number for t in again}
    finish_all(session)
    assert session.num_ended == 9


def test_the_file_shows_replicates_as_complete_trials(replicating: Make, tmp_path: Path) -> None:
    from vitnas.engine.store.study import read_study

    finish_all(replicating(num_trials=2))
    _, stored = read_study(tmp_path)
    again = [t for t in stored if t.user_attrs["network"].get("replicate_of") is not None]
    assert again
    assert all(
        t.state.name == "COMPLETE" and t.values[0] == t.user_attrs["curve"][-1] for t in again
    )


def test_the_sampler_ehvi_reads_means(replicating: Make) -> None:
    from vitnas.engine.samplers import make_sampler

    controller = replicating(num_trials=6)
    finish_all(controller)
    sampler: Any = make_sampler("ehvi", 0, make_space())
    study = controller.store.study
    seen = sampler._read(study, study.ask())
    assert all(trial.replicate_of is None for trial in seen)
    assert any(len(trial.trainings) == 3 for trial in seen)


def test_the_display_tells_replicates_from_trials(replicating: Make) -> None:
    stream = io.StringIO()
    with Display(3, 3, stream) as display:
        finish_all(replicating(1, num_trials=3, listener=display.listen))
    lines = stream.getvalue().splitlines()
    assert [line[:5] for line in lines[:3]] == ["[1/3]", "[2/3]", "[3/3]"]
    again = lines[3:]
    assert again
    assert [line.split("]")[0] for line in again] == [
        f"[replicate {number}" for number in range(1, len(again) + 1)
    ]
    assert all("replicate of " in line for line in again)


def test_the_status_counts_them(replicating: Make, tmp_path: Path) -> None:
    controller = replicating(2, num_trials=3)
    controller.store.set("num_trials", 3)
    finish_all(controller, 4)
    job = controller.next()
    assert job is not None
    controller.report(job.number, 1, 33.0)
    status = read_status(tmp_path)
    assert (status.num_ended, status.num_replicates) == (3, 1)
    assert sum(status.counts.values()) == len(read_run(tmp_path).trials)
    (underway,) = status.underway
    assert underway.replicate_of is not None
    text = status_text(status)
    assert "3/3 trials, 1 replicate, " in text
    assert f"replicate of {underway.replicate_of}  " in text


def test_the_fewest_first_then_the_least_certain() -> None:
    def trial(number: int, top1: float, flops: int, **more: Any) -> TrialRecord:
        return TrialRecord(number, outcome=Outcome.COMPLETE, flops=flops, curve=(top1,), **more)

    trials = [trial(0, 60.0, 1), trial(1, 90.0, 2), trial(2, 90.5, 3), trial(3, 50.0, 4)]
    wants = Replication(1, IMAGES)
    order = []
    while (number := wants.next(trials)) is not None:
        order.append(number)
        more = trial(len(trials), trials[number].curve[-1], trials[number].flops)
        trials.append(TrialRecord(**{**vars(more), "replicate_of": number}))
    assert order == [2, 1, 0], "3 is far off; the place of 2 is open, that of 0 is certain"
    assert [t.number for t in near_front(trials, IMAGES, ("flops",))] == [0, 1, 2]


def test_weights_of_what_may_come_to_the_front_are_kept(tmp_path: Path) -> None:
    def trial(number: int, top1: float, flops: int) -> TrialRecord:
        return TrialRecord(number, outcome=Outcome.COMPLETE, flops=flops, curve=(top1,))

    trials = [trial(0, 90.0, 1), trial(1, 89.9, 1), trial(2, 50.0, 1)]
    again = TrialRecord(3, outcome=Outcome.COMPLETE, flops=1, curve=(80.0,), replicate_of=0)
    for weights, kept in ((KeptWeights(tmp_path), {0}), (KeptWeights(tmp_path, IMAGES), {0, 1})):
        for one in trials:
            weights.put(one.number, b"x")
        weights.clean(trials, ("flops",))
        assert {int(path.stem) for path in weights.folder.iterdir()} == kept
    weights.put(3, b"")
    weights.clean([*trials, again], ("flops",))
    assert {int(path.stem) for path in weights.folder.iterdir()} == {0, 1, 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replicates": -1}, "replicates = -1: should be greater than or equal to 0"),
        ({"replicates": 2, "hours": 1.0}, "add --trials, e.g. 24"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(VitnasError, match=message):
        run_search(make_space(), tmp_path / "run", SearchOptions(**options))
    assert not (tmp_path / "run").exists()
