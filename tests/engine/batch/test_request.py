"""A request is all that determines a training; its key says so."""

from __future__ import annotations

from tests.config.test_baseline import DIGITS
from tests.engine.conftest import make_space
from vitnas.config.training import ProxyConfig
from vitnas.config.trials import RandomTrial
from vitnas.engine.batch.request import Answer, Request
from vitnas.records import Outcome

PROXY = ProxyConfig(epochs=2)


def test_whatever_changes_the_result_changes_the_key() -> None:
    network = make_space().suggest(RandomTrial(0))
    requests = [
        Request(DIGITS, PROXY, 0),
        Request(network, PROXY, 0),
        Request(DIGITS, ProxyConfig(epochs=3), 0),
        Request(DIGITS, PROXY, 1),
        Request(DIGITS, PROXY, 0, test=True),
        Request(DIGITS, PROXY, 0, int8=True),
    ]
    assert len({request.key for request in requests}) == len(requests)
    assert Request(DIGITS, PROXY, 0).key == requests[0].key


def test_it_tells_what_is_trained() -> None:
    told = Request(DIGITS, PROXY, 3).told()
    assert told["baseline"]["family"] == "dwcnn"
    assert told["proxy"]["epochs"] == 2
    assert told["seed"] == 3


def test_only_a_complete_training_has_an_accuracy() -> None:
    assert Answer(outcome=Outcome.COMPLETE, curve=(10.0, 20.0)).top1 == 20.0
    assert Answer(outcome=Outcome.DIVERGED, curve=(10.0, 20.0)).top1 is None
