"""A calibration of a small space whose trainings are invented."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from tests.engine.conftest import make_space
from vitnas.calibration.judge import judge
from vitnas.calibration.options import CalibrationOptions
from vitnas.calibration.plan import CalibrationPlan, make_plan
from vitnas.calibration.result import Calibration
from vitnas.config.model import ModelConfig
from vitnas.engine.batch.request import Answer, Request
from vitnas.records import Outcome
from vitnas.sessions import Data

SPACE = make_space()
DATA = Data.model_validate({"name": "digits", "num_val_images": 287, "fingerprint": {"train": "a"}})


@cache
def plan(networks: int = 16, seeds: int = 2) -> CalibrationPlan:
    return make_plan(SPACE, CalibrationOptions(networks=networks, seeds=seeds))


def answer(request: Request) -> Answer:
    """Half of a network's worth is in its key; the shorter the training, the more noise."""
    assert isinstance(request.subject, ModelConfig)
    worth = random.Random(str(request.subject.to_tree()["stages"])).random()
    draw = random.Random(request.key)
    if request.zero_cost:
        return Answer(outcome=Outcome.COMPLETE, scores={"naswot": (draw.random(), 0.01)})
    epochs, share = request.proxy.epochs, request.proxy.train_fraction
    final = 60 + 10 * worth + draw.gauss(0, 1.5 / (epochs * share))
    curve = tuple(final - 20 / epoch + 20 / epochs for epoch in range(1, epochs + 1))
    losses = tuple(3 - worth + draw.gauss(0, 0.3) - 0.1 * epoch for epoch in range(epochs))
    seconds = epochs * share + 0.1
    likelihoods = tuple(worth - 3 + draw.gauss(0, 0.01) for _ in range(epochs))
    return Answer(
        outcome=Outcome.COMPLETE,
        curve=curve,
        losses=losses,
        log_likelihoods=likelihoods,
        seconds=seconds,
    )


def judged(
    networks: int = 16, seeds: int = 2, get: Callable[[Request], Answer | None] = answer
) -> Calibration:
    return judge(plan(networks, seeds), get, SPACE.to_tree(), DATA)
