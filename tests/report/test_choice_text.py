"""A chosen network in words, and as plain values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.runs import ENVIRONMENT, invented_run, run_of, trial
from tests.report.test_longer import run_with
from tests.report.test_outlook import rivals_off_the_front
from tests.test_longer import training
from vitnas.exported.choose import Target
from vitnas.longer import add
from vitnas.report.choice import choose
from vitnas.report.choice_text import choice_json, choice_text


def test_without_the_number_of_images_words_say_so() -> None:
    data = {**ENVIRONMENT["data"], "num_val_images": None}
    known = run_of(Path("r"), trial(0), trial(1, 60.0), environment={**ENVIRONMENT, "data": data})
    assert "cannot be said" in choice_text(choose(known, Target()))


@pytest.mark.parametrize(
    "target", [Target(), Target({"flops": 3e8}), Target(min_top1=30.0, is_robust=True)]
)
def test_words_and_json_of_an_invented_run(tmp_path: Path, target: Target) -> None:
    run = invented_run(tmp_path / "run", 40, seed=3)
    found = choose(run, target)
    text = choice_text(found)
    assert f"Trial {found.trial.number} has the" in text
    assert f"--trial {found.trial.number} --to" in text
    assert "total" in text
    assert "nan" not in text
    values = json.loads(json.dumps(choice_json(found), allow_nan=False))
    assert values["trial"] == found.trial.number
    assert values["flops"] == found.trial.flops
    assert len(values["neighbours"]) == len(found.neighbours)


def test_a_run_of_one_network_is_alone() -> None:
    text = choice_text(choose(run_of(Path("r"), trial(0)), Target()))
    assert "alone on the front" in text
    assert "1 network" in text
    assert "best of them" not in text, "there are no others"


def test_neighbours_are_told_with_each_cost_that_was_measured() -> None:
    known = [
        trial(n, 60.0 + 5 * n, 1_000_000 << n, measured={"latency_ms": 1.5 + n}) for n in range(3)
    ]
    known.append(trial(3, 80.0, 8_000_000))
    lines = choice_text(choose(run_of(Path("r"), *known), Target({"flops": 2e6}))).splitlines()
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("beside it")) :]
    assert "parameters  latency  network" in table[0]
    told = [line.split("40.0 k")[1].split()[:2] for line in table[1:4]]
    assert told == [["1.50", "ms"], ["3.50", "ms"], ["–", "1x"]]
    assert "latency" not in choice_text(choose(run_of(Path("r"), trial(0), known[3]), Target()))


def test_where_the_choice_is_sure_enough_nothing_is_asked_for() -> None:
    run = run_of(Path("r"), trial(0, 60.0), trial(1, 61.8, 2_000_000))
    found = choose(run, Target())
    assert ([one.number for one in found.rivals], found.outlook) == ([1, 0], None)
    assert "--replicates" not in choice_text(found)


def test_where_it_is_not_sure_by_the_chance_that_is_printed_advice_follows() -> None:
    run = run_of(Path("r"), trial(0, 60.0), trial(1, 61.2, 2_000_000))
    text = choice_text(choose(run, Target()))
    assert "best of them with a probability of 0.86" in text
    assert "The search's own command with --replicates" in text


def test_the_command_counts_the_replicates_that_there_are_and_the_table_is_of_it() -> None:
    again = [trial(2, 60.0, replicate_of=0), trial(3, 60.2, replicate_of=1)]
    known = [trial(0, 60.0, replicates=(60.0,)), trial(1, 60.2, 2_000_000, replicates=(60.2,))]
    text = choice_text(choose(run_of(Path("r"), *known, replicates=tuple(again)), Target()))
    assert "with --replicates 9 makes these trainings" in text
    table = text[text.index("--replicates  best with") :].splitlines()
    assert [line.split()[0] for line in table[1:5]] == ["2", "3", "5", "9"]
    assert table[4].split()[3:] == ["16", "3", "min"]


def test_all_trainings_that_the_command_makes_are_counted() -> None:
    """A cheaper network is no rival under no bound, but it is on the front."""
    known = [trial(0, 60.0, seconds=100.0), trial(1, 60.9, 2_000_000), trial(2, 20.0, 1_000)]
    found = choose(run_of(Path("r"), *known), Target())
    assert {one.number for one in found.rivals} == {0, 1}
    assert found.outlook is not None
    assert found.outlook.steps[1].trainings == 3
    assert found.outlook.steps[1].seconds == 125.0


def test_rivals_that_replicates_alone_do_not_train_are_named() -> None:
    text = choice_text(choose(rivals_off_the_front(), Target()))
    assert "Others that may be: trial 1 (0.06), trial 2 (0.06), trial 3 (0.06)." in text
    assert "on the front, but not trial 1, trial 2 and trial 3; with --replicate-all" in text
    assert "with --replicates 8 --replicate-all makes these trainings" in text


def test_a_table_that_ends_unsure_says_so() -> None:
    equal = [trial(n, 60.0, 1_000_000 + n) for n in range(4)]
    text = choice_text(choose(run_of(Path("r"), *equal), Target()))
    assert "Even --replicates 8 --replicate-all leaves that unsure (below 0.9)" in text
    sure = choose(run_of(Path("r"), trial(0, 60.0), trial(1, 60.9, 2_000_000)), Target())
    assert "unsure" not in choice_text(sure)


def test_with_a_least_top1_words_say_what_more_replicates_tell() -> None:
    run = run_of(Path("r"), trial(0, 60.0), trial(1, 80.0, 2_000_000))
    text = choice_text(choose(run, Target(min_top1=59.5)))
    assert "at least 59.5 % with a probability of 0.74" in text
    assert "told rightly with" in text
    assert "points below the best" not in text
    close = choice_text(choose(run, Target(min_top1=59.95)))
    assert "(below 0.9): its true top-1 is close to 59.95 %." in close


def test_long_trainings_of_the_network_and_its_neighbours_are_told(tmp_path: Path) -> None:
    """Those of one setting in one table; the network of trial 2 is no neighbour."""
    run_with(tmp_path, [60.0, 61.0, 62.0, 63.0, 64.0, 65.0])
    run = run_with(tmp_path, [0.0] * 4, setting="1" * 12, epochs=300, recipe="deit")
    found = choose(run, Target({"flops": 10.0**8}))
    assert [one.trial.number for one in found.neighbours] == [3, 4, 6, 7]
    assert [[one.trial for one in group] for group in found.long] == [[3, 4, 5], [3]]
    text = choice_text(found)
    first, second = text.split("long: 30 epochs (small)")[1].split("long: 300 epochs (deit)")
    assert [line.split()[:4] for line in first.splitlines()[1:4]] == [
        ["trial", "3", "64.00", "63.00"],
        ["trial", "4", "65.00", "64.00"],
        ["trial", "5", "66.00", "65.00"],
    ]
    assert second.splitlines()[1].split()[:4] == ["trial", "3", "1.00", "0.00"]
    values = json.loads(json.dumps(choice_json(found), allow_nan=False))["long"]
    assert [(one["trial"], one["epochs"]) for one in values] == [
        (3, 30),
        (4, 30),
        (5, 30),
        (3, 300),
    ]
    assert (values[2]["top1"], values[2]["test_top1"], values[2]["seeds"]) == (66.0, 65.0, [0])


def test_a_rival_s_long_training_is_told_though_it_is_not_on_the_front(tmp_path: Path) -> None:
    run = run_of(tmp_path, trial(0, 60.0), trial(1, 59.9, 2_000_000))
    add(tmp_path, training(1, key=run.trials[1].key))
    found = choose(run, Target())
    assert (found.trial.number, found.neighbours) == (0, ())
    assert [one["trial"] for one in choice_json(found)["long"]] == [1]


def test_without_a_long_training_nothing_is_told_of_one(tmp_path: Path) -> None:
    found = choose(run_with(tmp_path, [60.0]), Target({"flops": 10.0**8}))
    assert "scoring, %" not in choice_text(found), "trial 0 is no neighbour"
    assert choice_json(found)["long"] == []
