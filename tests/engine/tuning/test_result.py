"""What was found is one line, a table, JSON, and a recipe that a space file takes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.engine.tuning.test_tuner import NETWORKS, RECIPES, best_at, tuned
from vitnas.config.files import read_yaml, validate
from vitnas.config.training import ProxyConfig
from vitnas.engine.tuning.result import RECIPE_FILE, RESULT_FILE, Tuned, ranked, told
from vitnas.engine.tuning.tuner import Gain

LARGE = Gain(8.4, 1.2)


def result(gain: Gain | None = LARGE, rate: float = 1e-2) -> Tuned:
    tuner = tuned(best_at(rate), 8)
    return Tuned(RECIPES.own, ranked(tuner.tried, tuner.best), gain, tuple(NETWORKS), 60.0)


def test_a_better_recipe_is_used() -> None:
    found = result()
    assert found.proxy == found.tried[0].proxy != found.own
    assert found.line.endswith(
        ": +8.4 +- 1.2 points of top-1 on 4 networks, above the space's own recipe"
    )


def test_a_gain_that_may_be_chance_is_used_and_said() -> None:
    """By the own recipe as by the other one a point may be lost, and this one did better twice."""
    found = replace(result(), gain=Gain(1.0, 1.2))
    assert found.proxy == found.tried[0].proxy
    assert found.line.endswith("recipe; that may be chance, and is the better guess")


def test_a_recipe_that_loses_with_other_seeds_is_not() -> None:
    found = replace(result(), gain=Gain(-0.1, 1.2))
    assert found.proxy == found.own
    assert found.line.startswith("the space's own recipe is kept: the best other one (")
    none = result(None, rate=3e-3)
    assert none.proxy == none.own
    assert none.line.startswith("no recipe of 8 is better than the space's own (")


def test_the_table_has_the_best_first_and_says_what_was_not_trained() -> None:
    found = result()
    rows = found.text().splitlines()[-len(found.tried) :]
    assert rows[0].startswith(f"{found.tried[0].gain:+6.1f}")
    assert sum("(the space's own)" in row for row in rows) == 1
    assert [len(one.gains) for one in found.tried] == sorted(
        (len(one.gains) for one in found.tried), reverse=True
    )
    assert "points on 4 networks" in told(found.tried[0])


def test_the_files(tmp_path: Path) -> None:
    found = result()
    found.write(tmp_path, {"space": "a", "images": "b"})
    block = read_yaml(tmp_path / RECIPE_FILE)
    assert validate(ProxyConfig, block["proxy"]) == found.proxy
    tree = json.loads((tmp_path / RESULT_FILE).read_text())
    assert tree["is_better"] is True
    assert tree["gain"] == {"points": 8.4, "error": 1.2}
    assert len(tree["tried"]) == 8
