"""From answers to figures, on invented trainings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.calibration.made_up import answer, judged, plan
from vitnas.calibration.agreement import Tau
from vitnas.calibration.judge import AZ_PARTS, az_nas
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.engine.batch.request import Answer, Request
from vitnas.errors import RunError
from vitnas.records import Outcome

LOST = Answer(outcome=Outcome.DIVERGED, error="Diverged: loss in epoch 1 is nan", seconds=1.0)


def test_everything_is_judged_and_sorted_by_cost() -> None:
    found = judged()
    names = {one.name: one.kind for one in found.proxies}
    assert names == {
        "FLOPs": "size",
        "parameters": "size",
        "naswot": "score",
        "loss of epoch 1": "first epoch",
        "long, cut at 1": "cut",
        "long, cut at 3": "cut",
        "proxy": "training",
        "1 epoch": "training",
        "half of the images": "training",
        "images of 4 px": "training",
        "half of the width": "training",
        "half of the classes": "training",
        "proxy, log-likelihood": "likelihood",
        "1 epoch, log-likelihood": "likelihood",
        "half of the images, log-likelihood": "likelihood",
        "images of 4 px, log-likelihood": "likelihood",
        "half of the width, log-likelihood": "likelihood",
        "half of the classes, log-likelihood": "likelihood",
    }
    costs = [one.cost for one in found.proxies]
    assert costs == sorted(costs)
    assert found.figures("long, cut at 3").cost == pytest.approx(3 / 9)
    assert found.figures("proxy").cost == pytest.approx((3 * 0.3 + 0.1) / (9 * 0.3 + 0.1))
    assert (len(found.networks), found.bins, found.lost) == (16, 4, 0)
    assert found.ceiling_within.value > 0.8
    assert found.ceiling_within.value > found.figures("1 epoch").within.value


def test_the_parts_of_az_nas_are_put_together_by_ranks() -> None:
    """Here they rank like FLOPs, which are the fourth part, so their sum does, too."""

    def sized(request: Request) -> Answer:
        if not request.zero_cost:
            return answer(request)
        assert isinstance(request.subject, ModelConfig)
        size = float(closed_form(request.subject).flops)
        return Answer(outcome=Outcome.COMPLETE, scores=dict.fromkeys(AZ_PARTS, (size, 0.01)))

    found = judged(get=sized)
    together, size = found.figures("az_nas"), found.figures("FLOPs")
    assert (together.overall, together.within) == (size.overall, size.within)
    assert together.cost == pytest.approx(3 * found.figures("az_expressivity").cost)


def test_a_network_that_is_last_in_one_part_is_not_saved_by_the_others() -> None:
    first, second = np.array([1.0, 2, 3, 4]), np.array([4.0, 3, 2, 1])
    found = az_nas([first, second, np.array([4.0, 3, 2, 1])])
    assert found.argmax() == 1
    assert found.argmin() == 3
    assert found[1] == pytest.approx(math.log(2 * 3 * 3 / 4**3))


def test_a_network_without_a_part_has_no_score_and_takes_no_rank() -> None:
    found = az_nas([np.array([1.0, np.nan, 5.0]), np.array([1.0, 2.0, 2.0])])
    assert np.isnan(found).tolist() == [False, True, False]
    assert found[2] == pytest.approx(math.log(2 / 3) + math.log(2.5 / 3))


def test_trainings_that_took_no_time_cost_nothing() -> None:
    found = judged(get=lambda request: answer(request).model_copy(update={"seconds": 0.0}))
    assert found.figures("proxy").cost == 0


def test_a_cut_training_is_compared_to_the_other_seeds_alone() -> None:
    """Else it would share its noise with what it is to foretell."""

    def noise(request: Request) -> Answer:
        """Long trainings agree with nothing but their own first epoch."""
        top1 = 50 + request.seed % 1000 / 50
        return answer(request).model_copy(update={"curve": (top1,) * request.proxy.epochs})

    found = judged(40, get=noise)
    assert found.figures("long, cut at 1").overall.value == found.ceiling_overall.value
    assert abs(found.ceiling_overall.value) < 0.4


def test_a_diverged_proxy_ranks_last_and_a_lost_long_training_drops_the_network() -> None:
    asked = plan()
    proxy = asked.fidelities[0].request(asked.networks[3].config).key
    found = judged(get=lambda request: LOST if request.key == proxy else answer(request))
    assert found.figures("proxy").missing == 1
    assert len(found.networks) == 16
    long = asked.long_request(asked.networks[3], 1).key
    found = judged(get=lambda request: LOST if request.key == long else answer(request))
    assert (len(found.networks), found.lost) == (15, 1)
    flops = [network.flops for network in asked.networks]
    assert [member.flops for member in found.networks] == flops[:3] + flops[4:]


def test_a_training_is_judged_by_its_log_likelihood_too() -> None:
    """The same seconds, another number: here nearly without noise."""
    found = judged()
    by_top1, by_likelihood = map(found.figures, ("1 epoch", "1 epoch, log-likelihood"))
    assert by_likelihood.cost == by_top1.cost
    assert by_likelihood.within.value > by_top1.within.value


def test_trainings_of_earlier_versions_have_no_log_likelihood() -> None:
    found = judged(get=lambda request: answer(request).model_copy(update={"log_likelihoods": ()}))
    assert not [one for one in found.proxies if one.kind == "likelihood"]


def test_too_few_long_trainings_are_an_error_with_the_first_reason() -> None:
    with pytest.raises(RunError, match=r"0 of 16 networks were trained long .*loss in epoch 1"):
        judged(get=lambda request: LOST)


def test_members_have_a_top1_of_each_seed() -> None:
    found = judged(seeds=3)
    assert all(len(member.top1) == 3 for member in found.networks)
    assert isinstance(found.ceiling_overall, Tau)
