"""A search and replays give what they gave before: the files here are an earlier vitnas's.

They are of the first one whose front and whose sampler go by expected top-1; the search, of the
first one that begins with plain networks; the replays, of the first ones whose tables have several
trainings of each network.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.golden.write import PAIRS, replay, search

HERE = Path(__file__).parent
UNTAUGHT = 3  # networks that the sampler proposes before it looks at an accuracy
DRAWN = ("number", "key", "params", "config", "seed", "flops", "num_params", "origin")


def _stored(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text())


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.slow
def test_a_search_leaves_the_same_study(tmp_path: Path) -> None:
    """Whole where the processor rounds as that of the file did; else what no accuracy decides."""
    then, now = _stored("search"), _plain(search(tmp_path))
    if now["trials"][0]["curve"] == then["trials"][0]["curve"]:
        assert now == then
    for old, new in zip(then["trials"][:UNTAUGHT], now["trials"][:UNTAUGHT], strict=True):
        assert {name: new[name] for name in DRAWN} == {name: old[name] for name in DRAWN}
    assert now.keys() == then.keys()


@pytest.mark.slow
@pytest.mark.parametrize("table", PAIRS)
def test_a_replay_gives_the_same_figures(table: str) -> None:
    """To the last digits, which depend on the order in which a processor adds."""
    _assert_close(_plain(replay(table)), _stored(f"replay_{table}"))


def _assert_close(new: Any, old: Any) -> None:
    """Equal, numbers up to rounding."""
    if isinstance(old, float):
        assert new == pytest.approx(old, rel=1e-9)
    elif isinstance(old, (dict, list)):
        assert type(new) is type(old)
        keys = old if isinstance(old, dict) else range(len(old))
        assert len(new) == len(old)
        for key in keys:
            _assert_close(new[key], old[key])
    else:
        assert new == old
