"""A batch of trainings: the same answers from every back end, and none lost with its process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.config.test_baseline import DIGITS
from tests.engine.conftest import make_space
from vitnas.config.trials import RandomTrial
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.batch.request import Answer, Request
from vitnas.errors import DataError
from vitnas.records import Outcome
from vitnas.training.zero_cost import SCORES

SPACE = make_space()
PROXY = SPACE.config.proxy
NETWORK = SPACE.suggest(RandomTrial(0))


def requests() -> list[Request]:
    hot = PROXY.model_copy(update={"lr": 1.0, "grad_clip": 0.0})
    unknown = DIGITS.model_copy(update={"family": "unheard_of"})
    return [
        Request(NETWORK, PROXY, 0),
        Request(DIGITS, PROXY, 0, test=True),
        Request(DIGITS, PROXY, 1),
        Request(unknown, hot, 0),
    ]


@pytest.mark.slow
def test_a_batch_in_this_process() -> None:
    backend = SerialBackend(0.0)
    backend.prepare(SPACE)
    first, tested, other, failed = [answer for _, answer in backend.answers(requests())]
    assert first.top1 is not None
    assert len(first.losses) == len(first.log_likelihoods) == PROXY.epochs
    assert all(-10 < value < 0 for value in first.log_likelihoods)
    assert tested.test_top1 is not None
    assert other.test_top1 is None
    assert tested.losses != other.losses
    assert failed.outcome is Outcome.FAILED
    assert failed.error is not None
    assert "unheard_of" in failed.error
    assert [a.curve for _, a in backend.answers(requests()[:1])] == [first.curve]


def test_a_request_may_be_of_scores_at_initialisation_alone() -> None:
    backend = SerialBackend(0.0)
    backend.prepare(SPACE)
    asked = Request(NETWORK, PROXY, 0, zero_cost=True)
    assert asked.key != Request(NETWORK, PROXY, 0).key
    ((_, answer),) = backend.answers([asked])
    assert answer.outcome is Outcome.COMPLETE
    assert (answer.curve, answer.losses) == ((), ())
    assert set(answer.scores) == set(SCORES)
    assert Answer.model_validate_json(answer.model_dump_json()) == answer


@pytest.mark.slow
def test_ray_gives_the_same_answers(shared_ray: Any) -> None:
    from vitnas.engine.backends.parallel import RayBackend

    serial, parallel = SerialBackend(0.0), RayBackend(2, 0.0, None)
    curves = []
    for backend in (serial, parallel):
        backend.prepare(SPACE)
        found = {request.key: answer for request, answer in backend.answers(requests())}
        curves.append({key: (a.outcome, a.curve, a.test_top1) for key, a in found.items()})
    assert curves[0] == curves[1]


@pytest.mark.slow
def test_workers_stay_for_the_next_batch_and_go_before_anything_else(shared_ray: Any) -> None:
    from vitnas.engine.backends.parallel import RayBackend

    backend = RayBackend(1, 0.0, None)
    backend.prepare(SPACE)
    (_, first), *_ = backend.answers([Request(DIGITS, PROXY, 0)])
    (desk,) = backend._desks
    for _ in backend.answers([Request(DIGITS, PROXY, 1), Request(DIGITS, PROXY, 2)]):
        break  # one of them is still to be trained: its worker is ended
    assert backend._desks == []
    assert [a.curve for _, a in backend.answers([Request(DIGITS, PROXY, 0)])] == [first.curve]
    (other,) = backend._desks
    assert other != desk
    list(backend.answers([Request(DIGITS, PROXY, 1)]))
    assert backend._desks == [other]
    backend.prepare(SPACE)
    assert backend._desks == []
    list(backend.answers([Request(DIGITS, PROXY, 1)]))
    backend.close()
    assert backend._desks == []


class Unsettled:
    """A worker whose images are gone."""

    def settle(self) -> None:
        raise DataError("images.bin: is gone")


@pytest.mark.slow
def test_a_worker_s_own_mistakes_come_as_they_are(shared_ray: Any) -> None:
    from vitnas.engine.backends.parallel import RayBackend

    backend = RayBackend(1, 0.0, None)
    backend._worker = Unsettled()  # type: ignore[assignment]
    with pytest.raises(DataError, match=r"^images\.bin: is gone$"):
        list(backend.answers(requests()[:1]))


@pytest.mark.slow
def test_a_request_may_depend_on_earlier_answers(shared_ray: Any) -> None:
    from vitnas.engine.backends.parallel import RayBackend

    seen: list[int] = []

    def asked() -> Iterator[Request]:
        for seed in range(3):
            assert seen == list(range(seed)), "asked before the one worker was free"
            yield Request(DIGITS, PROXY, seed)

    backend = RayBackend(1, 0.0, None)
    backend.prepare(SPACE)
    for request, _ in backend.answers(asked()):
        seen.append(request.seed)
    assert seen == [0, 1, 2]
