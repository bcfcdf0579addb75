"""What one run has trained, another one need not; and a cache never stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_baseline import DIGITS
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.cache import Cache
from vitnas.engine.batch.request import Answer, Request
from vitnas.records import Outcome

REQUEST = Request(DIGITS, ProxyConfig(), 0)
ANSWER = Answer(outcome=Outcome.COMPLETE, curve=(50.0,), losses=(1.0,))
FACTS = {"images": {"digest": "1a"}, "versions": {"torch": "2"}}


@pytest.fixture
def home(own_cache: Path) -> Path:
    return own_cache / "vitnas"


def test_another_run_finds_it_and_other_images_do_not() -> None:
    Cache(FACTS).put(REQUEST, ANSWER)
    assert Cache(FACTS).get(REQUEST) == ANSWER
    assert Cache(FACTS).get(Request(DIGITS, ProxyConfig(), 1)) is None
    assert Cache(FACTS | {"images": {"digest": "1b"}}).get(REQUEST) is None
    assert Cache(None).get(REQUEST) is None


def test_what_may_turn_out_otherwise_is_not_kept(home: Path) -> None:
    Cache(FACTS).put(REQUEST, Answer(outcome=Outcome.FAILED, error="no memory"))
    Cache(None).put(REQUEST, ANSWER)
    assert not home.exists()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b'{"outcome": "complete", "curve": 3}']
)
def test_a_damaged_file_is_trained_again_and_replaced(home: Path, content: bytes) -> None:
    cache = Cache(FACTS)
    cache.put(REQUEST, ANSWER)
    (file,) = home.rglob("*.json")
    file.write_bytes(content)
    assert cache.get(REQUEST) is None
    cache.put(REQUEST, ANSWER)
    assert cache.get(REQUEST) == ANSWER


def test_a_folder_that_cannot_be_written_is_no_error(home: Path) -> None:
    home.parent.mkdir(parents=True)
    home.write_text("a file")
    cache = Cache(FACTS)
    cache.put(REQUEST, ANSWER)
    assert cache.get(REQUEST) is None
