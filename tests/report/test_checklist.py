"""The NAS checklist: each answer follows from a fact of the run."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.report.runs import ENVIRONMENT, invented_run, reference, run_of, trial
from vitnas.records import BaselineRecord, Outcome
from vitnas.report.checklist import NO, PARTLY, UNKNOWN, YES, checklist
from vitnas.report.page import render_pages
from vitnas.run import Run

PATH = Path("results/small")


def answers(run: Run) -> dict[str, tuple[str, str]]:
    return {one.item: (one.answer, one.why) for one in checklist(run)}


def session(**more: Any) -> dict[str, Any]:
    told = deepcopy(ENVIRONMENT)
    told["sessions"][0] |= more
    return told


def test_sixteen_items_in_three_groups_for_any_run() -> None:
    for run in (invented_run(PATH, 40), run_of(PATH), run_of(PATH, environment={}, space={})):
        found = checklist(run)
        assert len(found) == len({one.item for one in found}) == 16
        assert list(dict.fromkeys(one.group for one in found)) == ["code", "comparisons", "details"]
        assert all(one.answer in (YES, PARTLY, NO, UNKNOWN) and one.why for one in found)


def test_a_run_that_says_everything() -> None:
    run = run_of(PATH, trial(0, test_top1=49.0), trial(1, 60.0, 2_000_000, test_top1=60.0))
    found = answers(run)
    code = found["Code of the training by which networks are judged"]
    assert code[0] == YES
    assert code[1].startswith("vitnas 0.1.0, git 40a507c81f2e")
    assert found["Hyperparameters and seeds of the search method"][1].startswith("seed 3")
    assert found["Same evaluation protocol for all that is compared"][0] == YES
    assert found["Performance over time"][0] == YES
    assert found["All details of the setup"][0] == YES
    assert found["Confounding factors controlled: hardware, versions"] == (
        YES,
        "one device (cpu), same versions",
    )
    assert found["Time of the whole method, end to end"][1].startswith("25 s in trainings")
    assert found["Several runs, and their seeds"] == (NO, "one run, seed 3")


def test_an_empty_run_claims_nothing() -> None:
    found = answers(run_of(PATH, environment={}, space={}))
    assert not [item for item, (answer, _) in found.items() if answer in (YES, PARTLY)]


def test_changed_files_and_changed_versions_are_a_no() -> None:
    dirty = run_of(PATH, trial(0), environment=session(git_revision="40a507c+"))
    code = answers(dirty)["Code of the search method"]
    assert code[0] == NO
    assert "files differed" in code[1]
    told = session()
    told["sessions"] += [{**told["sessions"][0], "versions": {"vitnas": "0.1.0", "torch": "2.7"}}]
    run = run_of(PATH, trial(0), trial(1, device="NVIDIA H100"), environment=told)
    answer, why = answers(run)["Confounding factors controlled: hardware, versions"]
    assert answer == NO
    assert why.startswith("devices: NVIDIA H100, cpu; versions that changed")
    assert "torch" in why


def test_code_that_changed_between_sessions_is_a_no() -> None:
    told = session()
    told["sessions"] += [{**told["sessions"][0], "git_revision": "880da2fef8a5"}]
    found = answers(run_of(PATH, trial(0), environment=told))
    answer, why = found["Confounding factors controlled: hardware, versions"]
    assert (answer, why) == (NO, "git revisions of the sessions: 40a507c81f2e, 880da2fef8a5")
    told["sessions"][0]["git_revision"] = "40a507c+"
    answer, why = answers(run_of(PATH, trial(0), environment=told))["Code of the search method"]
    assert answer == NO, "also where the last session's files were committed"
    assert "git 40a507c+, 880da2fef8a5: files differed" in why


def test_samplers_are_named() -> None:
    item = "Random search as a baseline"
    drawn = run_of(PATH, trial(0), environment=session(sampler="random"))
    assert answers(drawn)[item] == (YES, "this run is a random search")
    assert answers(run_of(PATH, trial(0), environment=session(sampler="ehvi")))[item][0] == NO
    other = run_of(PATH, trial(0), environment=session(sampler="mine"))
    assert answers(other)["Code of the search method"][0] == UNKNOWN


def test_without_baselines_none_are_said_to_be_scored() -> None:
    item = "Same evaluation protocol for all that is compared"
    alone = answers(run_of(PATH, trial(0, test_top1=50.0)))[item]
    assert alone == (YES, "the front is scored on the same test images, after the search")
    one = BaselineRecord(network=reference(), outcome=Outcome.COMPLETE, curve=(4.0,), test_top1=5.0)
    both = answers(run_of(PATH, trial(0, test_top1=50.0), baselines=(one,)))[item]
    assert both[1].startswith("front and baselines are scored")


def test_baselines_and_test_scores_count() -> None:
    one = BaselineRecord(
        network=reference("resnet"),
        outcome=Outcome.COMPLETE,
        flops=10**6,
        curve=(40.0,),
        seconds=5.0,
    )
    run = run_of(PATH, trial(0, test_top1=50.0), baselines=(one,))
    found = answers(run)
    compared = found["Same data, splits, space and training code for all that is compared"]
    assert compared == (YES, "1 baseline: the same images, recipe and code as the trials")
    protocol = found["Same evaluation protocol for all that is compared"]
    assert protocol == (NO, "1 of 2 networks have a test score")
    assert found["Time of the whole method, end to end"][1].startswith("18 s")


def test_tuning_is_told_where_it_was_done() -> None:
    item = "How hyperparameters were tuned, and what that took"
    assert answers(run_of(PATH, trial(0)))[item][0] == UNKNOWN
    tuned = run_of(PATH, trial(0), environment=ENVIRONMENT | {"tuned": "lr 0.002, 12 trainings"})
    assert answers(tuned)[item] == (YES, "tuned before the first trial: lr 0.002, 12 trainings")


def test_both_pages_have_it() -> None:
    pages = render_pages(invented_run(PATH, 20), b"")
    for page in (pages.html, pages.markdown):
        assert "Lindauer" in page
        assert "Ablation studies" in page
    assert pages.html.count('class="answer"') == 16
