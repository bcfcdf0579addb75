"""Every candidate as it stands: in memory, in the study and as listeners are told, at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import make_space
from vitnas.engine.decide.ledger import Ledger
from vitnas.engine.decide.locate import Candidate
from vitnas.engine.store.study import RunStore, read_run
from vitnas.records import Outcome, TrialRecord

PARAMS = {
    "stages[0].token_mixer": "mhsa",
    "stages[0].depth": 2,
    "stages[0].embed_dim": 32,
    "stages[0].mlp_ratio": 2.0,
    "groups": "[1]",
}


@pytest.fixture
def told() -> list[tuple[str, TrialRecord]]:
    return []


@pytest.fixture
def ledger(tmp_path: Path, told: list[tuple[str, TrialRecord]]) -> Ledger:
    return opened(tmp_path, told)


def opened(path: Path, told: list[tuple[str, TrialRecord]]) -> Ledger:
    space = make_space()
    store = RunStore(path, {"space": space.to_tree(), "seed": 0})
    return Ledger(store, space, 0, lambda event, trial: told.append((event, trial)))


def trained(ledger: Ledger, top1: float = 50.0) -> TrialRecord:
    """A candidate of one epoch that has ended."""
    number = ledger.enter(Candidate("a file", PARAMS, "")).number
    ledger.own(number)
    ledger.start(number)
    ledger.epoch(number, 1, top1)
    return ledger.end(number, Outcome.COMPLETE, seconds=2.0)


def test_a_candidate_is_priced_before_it_is_trained(ledger: Ledger) -> None:
    trial = ledger.enter(Candidate("a file", PARAMS, ""))
    assert trial.flops > 0
    assert trial.origin == "a file"
    assert trial.params == PARAMS
    assert trial.network.stages[0].depth == 2
    assert ledger.num_ended == 0


def test_memory_the_study_and_listeners_say_the_same(
    ledger: Ledger, told: list[tuple[str, TrialRecord]], tmp_path: Path
) -> None:
    ended = trained(ledger)
    assert [event for event, _ in told] == ["start", "epoch", "end"]
    assert told[-1][1] == ended == ledger[0] == ledger.trials[0]
    (stored,) = read_run(tmp_path).trials
    assert (stored.key, stored.curve, stored.outcome) == (ended.key, (50.0,), Outcome.COMPLETE)
    assert ledger.num_ended == 1


def test_a_later_session_knows_all_of_it(
    ledger: Ledger, told: list[tuple[str, TrialRecord]], tmp_path: Path
) -> None:
    ended = trained(ledger)
    ledger.store.close()
    told.clear()
    again = opened(tmp_path, told)
    assert [event for event, _ in told] == ["known"]
    assert again.number_of(ended.key) == 0
    assert again.keys == {ended.key}
    assert again.num_ended == 1


def test_a_duplicate_is_answered_and_costs_no_trial(ledger: Ledger) -> None:
    first = trained(ledger)
    second = ledger.enter(Candidate("a file", PARAMS, ""))
    assert second.key == first.key
    answered = ledger.answer(second.number, first.number)
    assert (answered.outcome, answered.duplicate_of) == (Outcome.DUPLICATE, 0)
    assert ledger.num_ended == 1
    assert ledger.store.study.trials[1].values == ledger.store.study.trials[0].values


def test_a_training_that_begins_again_loses_its_curve(ledger: Ledger) -> None:
    number = ledger.enter(Candidate("a file", PARAMS, "")).number
    ledger.epoch(number, 1, 40.0)
    ledger.epoch(number, 2, 45.0)
    assert ledger.epoch(number, 2, 46.0).curve == (40.0, 46.0)
    assert ledger.start(number).curve == ()


def test_what_breaks_a_rule_is_refused_with_the_reason(tmp_path: Path) -> None:
    model = make_space().config.model | {"broad": {"gamma": 0.5}}
    space = make_space(model=model)
    ledger = Ledger(RunStore(tmp_path, {"space": space.to_tree(), "seed": 0}), space, 0)
    mixer = {name: value for name, value in PARAMS.items() if "head" not in name}
    refused = ledger.enter(Candidate("", mixer | {"stages[0].token_mixer": "dwconv"}, ""))
    assert refused.outcome is Outcome.REFUSED
    assert str(refused.error).startswith("broad.gamma = 0.5: ")
    assert ledger.num_ended == 0
