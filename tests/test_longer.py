"""The file of a run's long trainings: lines are added whole, and damaged ones are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from vitnas.errors import RunError
from vitnas.longer import (
    FILE_NAME,
    LongTraining,
    add,
    check_can_add,
    read_long,
    setting_of,
    trials_of,
)
from vitnas.training.plan import make_plan

KEYS = {3: "a" * 12, 4: "b" * 12}


def training(trial: int = 3, **more: Any) -> LongTraining:
    fields = {
        "trial": trial, "key": KEYS.get(trial, "c" * 12), "top1": 97.5, "test_top1": 96.0,
        "epochs": 30, "seed": 0, "recipe": "small", "setting": "0" * 12, "seconds": 12.0,
    }  # fmt: skip
    return LongTraining(**{**fields, **more})


def of_baseline(name: str, **more: Any) -> LongTraining:
    fields = {"trial": None, "baseline": name, "key": "e" * 12, "flops": 10**6}
    return LongTraining(**{**training(3).model_dump(), **fields, **more})


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    assert read_long(tmp_path, KEYS).trainings == ()
    for one in (training(3), training(4, test_top1=None), training(3, seed=1)):
        add(tmp_path, one)
    found = read_long(tmp_path, KEYS)
    assert found.trainings == (training(3), training(4, test_top1=None), training(3, seed=1))
    assert not found.unread
    result = found.of(3)
    assert result is not None
    assert (result.seeds, result.top1, result.test_top1) == ((0, 1), 97.5, 96.0)
    assert found.of(5) is None


def test_a_baseline_is_known_by_its_name(tmp_path: Path) -> None:
    add(tmp_path, of_baseline("vgg-4", top1=90.0))
    add(tmp_path, training(3))
    add(tmp_path, of_baseline("vgg-4", seed=1))
    ((ours, theirs),) = read_long(tmp_path, KEYS).settings
    assert (ours.called, theirs.called) == ("trial 3", "baseline vgg-4")
    assert (theirs.seeds, theirs.top1) == ((0, 1), 93.75)
    assert (theirs.all_top1, theirs.all_test_top1) == ((90.0, 97.5), (96.0, 96.0))
    for fields in ({"trial": None}, {"baseline": "vgg-4"}, {"flops": 9}):
        with pytest.raises(ValidationError, match="is of a trial, or of a baseline with FLOPs"):
            LongTraining(**{**training(3).model_dump(), **fields})


def test_a_baseline_at_another_learning_rate_is_told_apart(tmp_path: Path) -> None:
    add(tmp_path, of_baseline("vgg-4", top1=90.0))
    add(tmp_path, of_baseline("vgg-4", lr=0.016))
    (group,) = read_long(tmp_path, KEYS).settings
    assert [one.started for one in group] == ["baseline vgg-4", "baseline vgg-4 at lr 0.016"]
    assert [one.top1 for one in group] == [90.0, 97.5]


def test_of_a_trial_the_best_learning_rate_by_the_scoring_images_counts(tmp_path: Path) -> None:
    add(tmp_path, training(3, lr=0.016, top1=98.0, test_top1=91.0))
    add(tmp_path, training(3, top1=97.0, test_top1=99.0))
    add(tmp_path, training(4, lr=0.016, top1=90.0))
    add(tmp_path, training(4, top1=95.0))
    found = read_long(tmp_path, KEYS)
    (group,) = found.settings
    assert [one.started for one in group] == [
        "trial 3", "trial 3 at lr 0.016", "trial 4", "trial 4 at lr 0.016",
    ]  # fmt: skip
    assert [one.started for one in trials_of(group)] == ["trial 3 at lr 0.016", "trial 4"]
    assert found.of(3) == group[1]
    assert found.best == group[1]
    add(tmp_path, training(4, setting="1" * 12, epochs=40))
    add(tmp_path, training(3, setting="1" * 12, epochs=40))
    add(tmp_path, of_baseline("vgg-4", setting="1" * 12, epochs=40))
    first, _ = read_long(tmp_path, KEYS).settings
    assert first[0].epochs == 40, "three networks are more than two at two rates"


def test_a_damaged_line_is_skipped_and_named(tmp_path: Path) -> None:
    """Half a line, too, that another process left: the next one does not continue it."""
    add(tmp_path, training(3))
    with (tmp_path / FILE_NAME).open("a") as file:
        file.write(training(4).model_dump_json()[:40])
    add(tmp_path, training(4))
    with (tmp_path / FILE_NAME).open("a") as file:
        file.write('\n{"trial": 4, "top1": 101.0}\n\x00\xff\n')
    add(tmp_path, training(9))
    add(tmp_path, training(3, key="d" * 12, seed=5))
    found = read_long(tmp_path, KEYS)
    assert found.trainings == (training(3), training(4))
    assert found.unread == (
        "line 2 (is damaged)",
        "line 5 (is damaged)",
        "line 6 (is damaged)",
        "line 7 (trial 9 has another network)",
        "line 8 (trial 3 has another network)",
    )


def test_the_same_training_counts_once(tmp_path: Path) -> None:
    for top1 in (50.0, 60.0):
        add(tmp_path, training(top1=top1))
    assert [one.top1 for one in read_long(tmp_path, KEYS).trainings] == [60.0]


def test_the_setting_of_most_networks_comes_first(tmp_path: Path) -> None:
    other = {"setting": "1" * 12, "epochs": 300}
    for one in (training(3, **other), training(3, seed=1, **other), training(4), training(3)):
        add(tmp_path, one)
    found = read_long(tmp_path, KEYS)
    assert [[one.trial for one in group] for group in found.settings] == [[3, 4], [3]]
    assert [one.seeds for group in found.settings for one in group] == [(0,), (0,), (0, 1)]
    result = found.of(3)
    assert result is not None
    assert (result.setting, result.epochs) == ("0" * 12, 30)


def test_the_best_is_that_of_the_highest_mean_on_the_scoring_images(tmp_path: Path) -> None:
    assert read_long(tmp_path, KEYS).best is None
    add(tmp_path, training(4, top1=80.0, test_top1=70.0))
    for seed, top1, test_top1 in ((0, 90.0, 85.0), (1, 60.0, 85.0)):
        add(tmp_path, training(3, seed=seed, top1=top1, test_top1=test_top1))
    best = read_long(tmp_path, KEYS).best
    assert best is not None
    assert (best.trial, best.top1) == (4, 80.0)


def test_a_mean_on_test_images_needs_all_trainings(tmp_path: Path) -> None:
    for seed, test_top1 in ((0, None), (1, 85.0)):
        add(tmp_path, training(3, seed=seed, test_top1=test_top1))
    ((result,),) = read_long(tmp_path, KEYS).settings
    assert (result.seeds, result.top1, result.test_top1) == ((0, 1), 97.5, None)


def test_a_setting_is_all_but_network_and_seed(tmp_path: Path) -> None:
    def of(model: str = "sret_t", **options: Any) -> str:
        return setting_of(make_plan(model, img_size=32, **options).identity())

    (tmp_path / "model.safetensors").write_bytes(b"some")
    assert of() == of("sret_s") == of(seed=3)
    assert len({of(), of(epochs=2), of(recipe="sret_t"), of(init_from=tmp_path)}) == 4
    here, there = (of(data=f"cifar10:/{root}") for root in "ab")
    assert here == there != of()


@pytest.mark.slow
def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.test_longer import training\n"
        "from vitnas.longer import add\n"
        "for seed in range(200): add(Path(sys.argv[1]), training(int(sys.argv[2]), seed=seed))\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(trial)]) for trial in KEYS
    ]
    assert [one.wait() for one in writers] == [0, 0]
    found = read_long(tmp_path, KEYS)
    assert (len(found.trainings), found.unread) == (400, ())


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_is_no_file_is_refused_before_and_after_the_training(
    tmp_path: Path, kind: str
) -> None:
    victim, path = tmp_path / "thesis.txt", tmp_path / FILE_NAME
    victim.write_text("mine")
    if kind == "link":
        path.symlink_to(victim)
    else:
        path.mkdir()
    with pytest.raises(RunError, match=r"long\.jsonl: is not a file of a run"):
        check_can_add(tmp_path)
    with pytest.raises(RunError, match=r"long\.jsonl: cannot be written"):
        add(tmp_path, training())
    assert victim.read_text() == "mine"


def test_a_pipe_is_refused_before_the_training(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE_NAME)
    with pytest.raises(RunError, match=r"long\.jsonl: is not a file of a run"):
        check_can_add(tmp_path)


def test_a_file_that_cannot_be_written_is_refused_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / FILE_NAME, os.access
    add(tmp_path, training())
    check_can_add(tmp_path)
    monkeypatch.setattr(os, "access", lambda at, mode: at != path and real(at, mode))  # as no root
    with pytest.raises(RunError, match=r"long\.jsonl: cannot be written"):
        check_can_add(tmp_path)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(RunError, match=r"long\.jsonl: cannot be read: is a directory"):
        read_long(tmp_path, KEYS)
