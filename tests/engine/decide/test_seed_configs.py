"""Networks that a search trains first: files, fronts, the papers', and those that a space names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import make_space
from tests.engine.decide.test_warm_start import SERIAL, finished, write_model
from vitnas.config.space import SearchSpace, load_space
from vitnas.engine.decide.warm_start import seed_candidates, told_own
from vitnas.engine.search import _start, run_search
from vitnas.engine.store.study import read_run
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import ConfigError
from vitnas.records import Outcome, TrialRecord


def test_model_files_and_fronts_are_candidates_once_each(tmp_path: Path) -> None:
    run = finished(tmp_path / "other")
    file = write_model(tmp_path / "mine.yaml", depth=2)
    found, misfits = seed_candidates(make_space(), [file, file, str(run.path)])
    assert found[0].origin == file
    assert not misfits
    keys = [candidate.key for candidate in found]
    assert len(keys) == len(set(keys))
    assert {trial.key for trial in run.front} <= set(keys)


def seeded(*depths: int) -> SearchSpace:
    """A space that names networks of these depths."""
    seeds = [{"stages": [{"token_mixer": "mhsa", "depth": depth}]} for depth in depths]
    return make_space(seed_configs=seeds)


def test_networks_that_the_space_names_are_at_most_a_third_of_the_trials() -> None:
    space = seeded(1, 2, 3)
    known = {drawn.key: drawn.stages[0].depth for drawn in space.networks()}

    def depths(trials: int | None) -> list[int]:
        found, misfits = seed_candidates(space, ["own"], trials)
        assert not misfits
        return [known[candidate.key] for candidate in found]

    assert [depths(number) for number in (2, 3, 6, 9, None)] == [[], [2], [1, 3], *[[1, 2, 3]] * 2]
    assert seed_candidates(space, ["none"], None)[0] == ()


def test_a_named_network_that_the_space_does_not_have_is_told() -> None:
    found, misfits = seed_candidates(seeded(1, 70), ["own"])
    assert len(found) == 1
    assert "70" in misfits["seed_configs[1]"]


CHANGED = {
    "another number of stages": {"stages": [{"embed_dim": 16}] * 2},
    "a bracket for a stage that is gone": {"groups": "[1][1]"},
    "heads that do not divide the width": {"stages": [{"token_mixer": "mhsa", "num_heads": 5}]},
    "groups that do not divide the tokens": {"stages": [{"token_mixer": "mhsa", "groups": [3]}]},
    "more than the axis has": {"stages": [{"token_mixer": "mhsa", "depth": 70}]},
    "another value of a fixed field": {"norm": "batchnorm"},
}
"""Networks that fitted before the space was changed."""


@pytest.mark.parametrize("change", sorted(CHANGED))
def test_a_named_network_without_a_wrong_value_of_its_own_is_no_mistake(change: str) -> None:
    space = make_space(seed_configs=[CHANGED[change], {}])
    found, misfits = seed_candidates(space, ["own"])
    assert len(found) == 1
    assert [*misfits] == ["seed_configs[0]"]


def test_what_does_not_fit_is_counted_apart_from_what_is_too_many() -> None:
    """Of three networks that fit, three trials take one; it said that one of two fits."""
    told: list[str] = []
    first = _start(seeded(1, 2, 3, 70), replace(SERIAL, trials=3), told.append).first
    assert len(first) == 1
    _start(seeded(70, 80), SERIAL, told.append)
    one, two = told
    assert one.startswith("--seed-configs: 1 network does not fit; seed_configs[3] ")
    assert two.startswith("--seed-configs: 2 networks do not fit; seed_configs[0] ")


OWN = "networks that the space names (--seed-configs none leaves them out)"


def trial(key: str = "other", outcome: Outcome = Outcome.COMPLETE, **more: Any) -> TrialRecord:
    return TrialRecord(outcome=outcome, number=0, key=key, **more)


def test_how_many_trials_begin_with_networks_of_the_space_is_told(tmp_path: Path) -> None:
    first, _ = seed_candidates(seeded(1, 3), ["own"])
    key = first[0].key
    assert told_own(first, [], 9) == f"the first 2 trials are {OWN}"
    assert told_own(first, [trial(taken=True)], 9) == f"the first 2 trials are {OWN}"
    assert told_own(first, [trial()], 9) == f"the next 2 trials are {OWN}"
    assert told_own(first, [trial(key)], 9) == f"the next trial is one of the {OWN}"
    assert told_own(first, [], 1) == f"the first trial is one of the {OWN}"
    lost = trial(key, Outcome.RUNNING)
    assert told_own(first, [lost], 9) == f"the first 2 trials are {OWN}"
    file = write_model(tmp_path / "mine.yaml", depth=2)
    mixed, _ = seed_candidates(seeded(1, 3), [file, "own"])
    assert told_own(mixed, [], 9) == f"2 of the first 3 trials are {OWN}"
    one, _ = seed_candidates(seeded(1), [file, "own"])
    assert told_own(one, [], 9) == f"1 of the first 2 trials is one of the {OWN}"


def test_nothing_is_told_where_no_network_of_the_space_is_left_to_train(tmp_path: Path) -> None:
    first, _ = seed_candidates(seeded(1, 3), ["own"])
    assert told_own(first, [trial(one.key) for one in first], 9) is None
    assert told_own(first, [trial()] * 9, 9) is None
    file = write_model(tmp_path / "mine.yaml", depth=2)
    assert told_own(seed_candidates(seeded(1, 3), [file])[0], [], 9) is None


@pytest.mark.slow
def test_a_search_says_that_it_begins_with_networks_of_its_space(tmp_path: Path) -> None:
    space, told = seeded(1, 3), list[str]()

    def said(**options: Any) -> list[str]:
        told.clear()
        run_search(space, tmp_path / "run", replace(SERIAL, **options), Watcher(notice=told.append))
        return [line for line in told if "the space names" in line]

    assert said(trials=3) == [f"the first trial is one of the {OWN}"]
    assert said(trials=3) == []
    assert said(trials=4) == [], "a third of four is the one that it has"
    assert said(trials=6) == [f"the next trial is one of the {OWN}"]
    assert said(trials=7) == []


@pytest.mark.slow
def test_a_search_trains_the_networks_of_its_space_first(tmp_path: Path) -> None:
    space = seeded(3)
    options = replace(SERIAL, trials=3)
    first = run_search(space, tmp_path / "own", options).complete[0]
    assert first.key == space.seed_network(0).key
    other = run_search(space, tmp_path / "none", replace(options, seed_configs=("none",)))
    assert other.complete[0].key != first.key
    assert read_run(tmp_path / "own").space == other.space, "the space is the same"


def test_of_the_zoo_those_that_fit_and_why_others_do_not() -> None:
    """Schedules that SReT's Table 7 has for T or for TL alone were rows of both."""
    space = load_space("sret_table7")
    found, misfits = seed_candidates(space, ["zoo"])
    rows = {candidate.params["row"] for candidate in found}
    assert len(rows) == len([*space.networks()]) - 1  # the zoo has no permutation without inverse
    assert misfits["deepvit_s"].startswith("is not in the space sret_table7: ")


def test_what_was_named_itself_must_fit(tmp_path: Path) -> None:
    file = write_model(tmp_path / "mine.yaml", depth=9)
    with pytest.raises(ConfigError, match=r"mine\.yaml: is not in the space tiny: .*depth"):
        seed_candidates(make_space(), [file])
    with pytest.raises(ConfigError, match="sret_t: is not in the space tiny"):
        seed_candidates(make_space(), ["sret_t"])
    with pytest.raises(ConfigError, match=r"'sret_tt': no such file, run or .*nearest: sret_t\)"):
        seed_candidates(make_space(), ["sret_tt"])
    with pytest.raises(ConfigError, match=r"nope\.yaml: no such file"):
        seed_candidates(make_space(), ["nope.yaml"])
