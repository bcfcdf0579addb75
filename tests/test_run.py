"""The front of a run, by what it expects of its networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.report.runs import ENVIRONMENT, run_of, trial
from vitnas.records import TrialRecord, front_of


def rising(number: int, lucky: int | None = None) -> tuple[TrialRecord, ...]:
    """Trials whose top-1 rises by 4 points with a tenfold cost; one scores 3 points too much."""
    return tuple(
        trial(n, 80 + 4 * n / number + 3 * (n == lucky), round(1e6 * 10 ** (n / number)))
        for n in range(number)
    )


FEW_IMAGES = {**ENVIRONMENT, "data": {**ENVIRONMENT["data"], "num_val_images": 400}}


def test_a_lucky_score_does_not_push_better_networks_off_the_front() -> None:
    run = run_of(Path("few"), *rising(20, lucky=4), environment=FEW_IMAGES)
    by_score = {t.number for t in front_of(run.trials, ["flops"])}
    members = {t.number for t in run.front}
    assert not by_score & set(range(5, 19)), "the lucky one bars them"
    assert len(members & set(range(10, 20))) >= 5
    assert all(t.top1 == t.trainings[0] for t in run.front), "the score stays what it is"


def test_a_network_that_cannot_be_read_leaves_the_scores_to_rank() -> None:
    trials = list(rising(12))
    trials[3] = replace(trials[3], config={"stages": [{"token_mixer": "no.such:Mixer"}]})
    run = run_of(Path("foreign"), *trials, environment=FEW_IMAGES)
    assert [t.expected for t in run.complete] == [None] * 12
    assert [t.number for t in run.front] == list(range(12))
    assert run.chances
