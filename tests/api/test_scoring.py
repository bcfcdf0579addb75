"""Trained networks from Python: what is wrong is said in one line before anything is read."""

from __future__ import annotations

import pytest

from vitnas import api
from vitnas.errors import ConfigError


def test_the_images_that_score_are_test_or_val() -> None:
    for ask in (api.evaluate, api.deploy_check):
        with pytest.raises(ConfigError, match=r"--score-on = 'tset': must be .* \(nearest: test\)"):
            ask("nowhere", "digits", score_on="tset")


def test_at_least_one_class_is_named() -> None:
    with pytest.raises(ConfigError, match="--top = 0: must be 1 or more"):
        api.predict("nowhere", ["image.png"], top=0)
