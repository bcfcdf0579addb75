"""Nothing that has been trained is trained again, also by the next process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_baseline import DIGITS
from vitnas.config.data import DataConfig
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.book import Book, images_name
from vitnas.engine.batch.request import Answer, Request
from vitnas.errors import RunError
from vitnas.records import Outcome
from vitnas.sessions import Data

REQUESTS = [Request(DIGITS, ProxyConfig(epochs=2), seed) for seed in range(3)]
ANSWER = Answer(outcome=Outcome.COMPLETE, curve=(10.0, 20.5), losses=(2.0, 1.5), seconds=0.5)


def test_an_answer_is_found_by_the_next_process(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    book = Book(file)
    assert book.missing([*REQUESTS, *REQUESTS]) == REQUESTS
    book.put(REQUESTS[1], ANSWER)
    assert Book(file).get(REQUESTS[1]) == ANSWER
    assert Book(file).missing(REQUESTS) == [REQUESTS[0], REQUESTS[2]]


def test_answers_on_other_images_are_kept_and_not_found(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    Book(file, "these").put(REQUESTS[0], ANSWER)
    others = Book(file, "those")
    assert others.get(REQUESTS[0]) is None
    others.put(REQUESTS[0], ANSWER)
    assert Book(file, "these").get(REQUESTS[0]) == ANSWER


@pytest.mark.parametrize(
    "line", ["no json", "[1]", '{"key": "a"}', '{"key": "a", "answer": {"outcome": "fine"}}']
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "answers.jsonl"
    Book(file).put(REQUESTS[0], ANSWER)
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(RunError, match="line 2 is not the result of a training"):
        Book(file)


@pytest.mark.parametrize("field", ["curve", "losses", "log_likelihoods"])
def test_a_result_of_fewer_epochs_than_were_asked_for_is_named(tmp_path: Path, field: str) -> None:
    file = tmp_path / "answers.jsonl"
    Book(file).put(REQUESTS[0], ANSWER)
    Book(file).put(REQUESTS[1], ANSWER.model_copy(update={field: (1.0,)}))
    book = Book(file)
    assert book.get(REQUESTS[0]) == ANSWER
    for asked in (lambda: book.get(REQUESTS[1]), lambda: book.missing(REQUESTS)):
        with pytest.raises(RunError, match="line 2 is not the result of a training; remove"):
            asked()


def test_answers_of_before_the_list_of_images_was_told_are_found() -> None:
    def name(**fingerprint: str) -> str:
        return images_name(DataConfig(), Data.model_validate({"fingerprint": fingerprint}))

    assert name(digest="a") == name(digest="a", listed="b")
    assert name(listed="b") != name(listed="c")
    assert images_name(DataConfig(), Data()) != name(digest="a")
