"""The options of a search are declared once; the command line and Python read the declaration."""

from __future__ import annotations

from typing import Any

import pytest

import vitnas
from vitnas.engine.options import SearchOptions
from vitnas.errors import ConfigError, RunError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trails": 3}, "trails = 3: there is no such option (nearest: trials)"),
        ({"trials": 0}, "trials = 0: should be greater than or equal to 1 (nearest: 1)"),
        ({"trials": "3"}, "trials = '3': should be a whole number"),
        ({"seed": 2**70}, f"seed = {2**70}: should be less than or equal to"),
        ({"keep_weights": "much"}, "keep_weights = 'much': a size is written like 500MB or 1.5GB"),
        ({"keep_weights": "nan"}, "keep_weights = 'nan': a size is written like 500MB or 1.5GB"),
        ({"hours": float("nan")}, "hours = nan: should be a finite number"),
        ({"start_from": "run"}, "start_from = 'run': should be a list"),
        ({"sampler": "tp"}, "sampler = 'tp': no such sampler (nearest: tpe)"),
    ],
)
def test_a_mistake_in_python_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        vitnas.search("digits", **given)
    assert str(error.value).startswith(said)


def test_replicates_that_never_start() -> None:
    with pytest.raises(RunError, match="add --trials"):
        SearchOptions(hours=1, replicates=2)
    assert SearchOptions(hours=1).num_trials is None
    with pytest.raises(RunError, match=r"--replicate-all: .* add e\.g\. --replicates 2"):
        SearchOptions(replicate_all=True)
    assert SearchOptions().num_trials == 24


def test_a_short_search_trains_few_baselines() -> None:
    assert SearchOptions().most_baselines == 8
    assert SearchOptions(trials=1).most_baselines == 4
    assert SearchOptions(baselines=False).most_baselines == 0
    assert SearchOptions(hours=1).most_baselines > 100
