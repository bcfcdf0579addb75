"""The baselines that a folder tells of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_baseline import DIGITS
from vitnas.config.baseline import PricedBaseline
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.references import FILE_NAME, read_baselines, untrained
from vitnas.engine.batch.request import Answer, Request
from vitnas.errors import RunError
from vitnas.records import Outcome

ANSWER = Answer(outcome=Outcome.COMPLETE, curve=(40.0, 50.0), test_top1=48.0, num_params=7)


def test_they_come_by_family_and_flops_with_all_that_is_known(tmp_path: Path) -> None:
    assert read_baselines(tmp_path) == ()
    book = Book(tmp_path / FILE_NAME)
    for width, family, flops in ((9, "b", 90), (4, "a", 40), (5, "b", 50)):
        subject = DIGITS.model_copy(update={"width": width, "family": family})
        request = Request(subject, ProxyConfig(), 3)
        book.put(request, ANSWER.model_copy(update={"flops": flops}))
    found = read_baselines(tmp_path)
    assert [(one.family, one.width) for one in found] == [("b", 5), ("b", 9), ("a", 4)]
    assert (found[0].top1, found[0].test_top1, found[0].num_params, found[0].seed) == (50, 48, 7, 3)


def test_of_several_learning_rates_the_best_one_counts(tmp_path: Path) -> None:
    """The first training of each is compared, so that replicates change no rate."""
    book = Book(tmp_path / FILE_NAME)
    for lr, seed, top1 in ((0.01, 3, 50.0), (0.02, 3, 60.0), (0.005, 3, None), (0.02, 4, 20.0)):
        request = Request(DIGITS, ProxyConfig(lr=lr), seed)
        done = ANSWER.model_copy(update={"curve": (40.0, top1), "test_top1": top1, "flops": 9})
        failed = Answer(outcome=Outcome.DIVERGED, error="loss is nan", flops=9)
        book.put(request, failed if top1 is None else done)
    (found,) = read_baselines(tmp_path)
    assert (found.lr, found.trainings, found.test_trainings) == (0.02, (60.0, 20.0), (60.0, 20.0))
    assert found.rates == ((0.005, None), (0.01, 50.0), (0.02, 60.0))


def test_what_has_no_training_yet_is_untrained(tmp_path: Path) -> None:
    wider = DIGITS.model_copy(update={"width": DIGITS.width + 1})
    members = [PricedBaseline(one, 1000, 10) for one in (DIGITS, wider)]
    assert untrained(tmp_path, members) == members
    Book(tmp_path / FILE_NAME).put(Request(DIGITS, ProxyConfig(), 3), ANSWER)
    assert untrained(tmp_path, members) == members[1:]


def test_one_learning_rate_is_no_choice(tmp_path: Path) -> None:
    Book(tmp_path / FILE_NAME).put(Request(DIGITS, ProxyConfig(lr=0.01), 3), ANSWER)
    (found,) = read_baselines(tmp_path)
    assert (found.lr, found.rates) == (0.01, ())


def test_trainings_that_are_not_asked_for_are_not_seen(tmp_path: Path) -> None:
    book = Book(tmp_path / FILE_NAME)
    low, high = (Request(DIGITS, ProxyConfig(lr=lr), 3) for lr in (0.01, 0.02))
    book.put(low, ANSWER)
    book.put(high, ANSWER.model_copy(update={"curve": (90.0,)}))
    (all_of_them,) = read_baselines(tmp_path)
    (found,) = read_baselines(tmp_path, {low.key})
    assert (all_of_them.lr, found.lr) == (0.02, 0.01)
    assert read_baselines(tmp_path, set()) == ()


@pytest.mark.parametrize(
    "request_text", ["{}", '{"baseline": 3}', '{"baseline": {"family": "<b>", "width": 1}}']
)
def test_what_is_no_baseline_is_one_line(tmp_path: Path, request_text: str) -> None:
    line = f'{{"key": "x", "answer": {{"outcome": "failed"}}, "request": {request_text}}}\n'
    (tmp_path / FILE_NAME).write_text(line)
    with pytest.raises(RunError, match=r"baselines.jsonl: the training x is not a baseline's"):
        read_baselines(tmp_path)
