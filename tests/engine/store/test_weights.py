"""weights/ of a run: what is the run's own there, and what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.test_effects import run as made_up
from vitnas.engine.store.weights import KeptWeights, near_front
from vitnas.errors import RunError
from vitnas.records import Outcome, TrialRecord, averaged, front_of

TRIALS = [
    TrialRecord(0, outcome=Outcome.COMPLETE, flops=1, curve=(90.0,)),
    TrialRecord(1, outcome=Outcome.COMPLETE, flops=1, curve=(50.0,)),
]


def test_files_that_are_no_trial_s_stay(tmp_path: Path) -> None:
    weights = KeptWeights(tmp_path)
    for name in ("0", "1", "2", "precious", "01"):
        weights.put(0, b"x")
        (weights.folder / f"{name}.safetensors").write_bytes(b"x")
    weights.clean(TRIALS, ("flops",))
    left = {path.stem for path in weights.folder.iterdir()}
    assert left == {"0", "2", "precious", "01"}, "1 is off the front, and there is no trial 2"


def test_nothing_behind_a_link_is_deleted_or_written(tmp_path: Path) -> None:
    theirs = tmp_path / "models"
    theirs.mkdir()
    (theirs / "1.safetensors").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "weights").symlink_to(theirs)
    weights = KeptWeights(tmp_path / "run")
    weights.clean(TRIALS, ("flops",))
    with pytest.raises(RunError, match="weights: is a link"):
        weights.put(0, b"x")
    assert [path.name for path in theirs.iterdir()] == ["1.safetensors"]


def test_others_are_kept_while_there_is_room_the_newest_first(tmp_path: Path) -> None:
    trials = [
        TrialRecord(number, outcome=Outcome.COMPLETE, flops=1, curve=(top1,), ended=ended)
        for number, top1, ended in ((0, 90.0, 1.0), (1, 50.0, 4.0), (2, 40.0, 3.0), (3, 60.0, 2.0))
    ]
    for room, kept in ((0, {0}), (99, {0}), (250, {0, 1}), (300, {0, 1, 2}), (400, {0, 1, 2, 3})):
        weights = KeptWeights(tmp_path, room=room)
        for trial in trials:
            weights.put(trial.number, b"x" * 100)
        weights.clean(trials, ("flops",))
        assert {number for number in range(4) if weights.has(number)} == kept


def test_of_many_networks_that_may_be_on_the_front_some_are_kept(tmp_path: Path) -> None:
    """Two images tell nothing, so all 100 may be on it; 80 files must not become thousands."""
    trials = [
        TrialRecord(n, outcome=Outcome.COMPLETE, flops=n + 1, curve=(50.0 + n * (n < 10),))
        for n in range(100)
    ]
    assert len(near_front(trials, 2, ("flops",))) == 100
    weights = KeptWeights(tmp_path, 2)
    for count in range(1, 101):
        weights.put(count - 1, b"x")
        weights.clean(trials[:count], ("flops",))
        assert len(list(weights.folder.iterdir())) <= 80
    left = {number for number in range(100) if weights.has(number)}
    assert left >= set(range(10)), "the front itself"


def test_the_front_of_a_long_run_has_its_weights_in_the_end(tmp_path: Path) -> None:
    """By one score on few images some of its members had seemed to be far from it, and were not
    scored on the test images."""
    run, kept = made_up(220, 1, 400), KeptWeights(tmp_path, 400)
    for trial in run.trials:
        kept.put(trial.number, b"x")
        kept.clean(run.trials[: trial.number + 1], run.costs)
    assert len(list(kept.folder.iterdir())) <= 80
    assert all(kept.has(trial.number) for trial in run.front)


def test_replicates_may_bring_a_network_to_the_front_that_seemed_far_from_it(
    tmp_path: Path,
) -> None:
    """On 287 images, as of `digits`: trainings of one network scatter by 1.7 binomial errors."""
    early = [
        TrialRecord(n, outcome=Outcome.COMPLETE, flops=n + 1, curve=(top1,))
        for n, top1 in enumerate((97.0, 93.0, 96.5))
    ]
    weights = KeptWeights(tmp_path, 287)
    for one in early:
        weights.put(one.number, b"x")
    weights.clean(early, ("flops",))
    again = [
        replace(early[of], number=number, replicate_of=of, curve=(top1,))
        for number, of, top1 in ((3, 0, 91.5), (4, 0, 91.0), (5, 1, 97.5), (6, 1, 97.0))
    ]
    front = front_of(averaged([*early, *again]), ("flops",))
    assert {trial.number for trial in front} == {0, 1, 2}
    assert all(weights.has(trial.number) for trial in front)
