"""What a run says of itself, and runs that say little."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.runs import run_of, trial
from vitnas.report.facts import facts, hardware_text, session_rows
from vitnas.report.terminal import ended_text
from vitnas.sessions import Environment, Hardware, Session

PATH = Path("results/small")


def test_facts_are_readable() -> None:
    found = dict(facts(run_of(PATH, trial(0, device="NVIDIA H100"))))
    assert found["Data"].startswith("cifar10, classes 10, train images 45,000, val images 5,000")
    assert found["Proxy training"] == "epochs 12, batch size 512, lr 0.001"
    assert found["Limits"] == "flops max 300,000,000, params max 8,000,000"
    assert found["Trained on"] == "NVIDIA H100"
    assert found["Seed"] == "3"


def test_the_first_classes_are_named() -> None:
    names = [f"c{number}" for number in range(23)]
    told = run_of(PATH).environment
    data = told.data.model_copy(update={"classes": names})
    named = dict(facts(replace(run_of(PATH), environment=told.model_copy(update={"data": data}))))
    assert named["Classes"] == ", ".join(names[:20]) + " and 3 more"
    assert named["Data"] == dict(facts(run_of(PATH)))["Data"]
    assert "Classes" not in dict(facts(run_of(PATH)))


@pytest.mark.parametrize("name", ["digest", "listed"])
def test_the_fingerprint_of_the_images_is_its_digest(name: str) -> None:
    """What else it holds stands before it. Where not all images were read, it is their list's."""
    told = run_of(PATH).environment
    mark = {"num_images": 60_000, "num_classes": 10, name: "ac45cd06"}
    data = told.data.model_copy(update={"fingerprint": mark})
    run = replace(run_of(PATH), environment=told.model_copy(update={"data": data}))
    assert dict(facts(run))["Data"] == dict(facts(run_of(PATH)))["Data"] + ", fingerprint ac45cd06"


def test_folds_are_told_with_the_images() -> None:
    """The numbers of images add up to more than there are: those that score also train."""
    run = run_of(PATH, space={"data": {"folds": 5}})
    assert dict(facts(run))["Data"].endswith(
        "test images 10,000; 5 folds: train images are those of one, val images those of all"
    )
    assert "fold" not in dict(facts(run_of(PATH, space={"data": {"folds": 1}})))["Data"]


def test_sessions_are_readable() -> None:
    (session,) = session_rows(run_of(PATH))
    assert session["started"] == "2025-03-04 09:12:33+00:00"
    assert session["hardware"] == "NVIDIA H100, AMD EPYC 9354, 16 cores, 128 GB"
    assert session["workers"] == "4 × tune"
    assert session["revision"] == "40a507c81f2e"
    revised = {"sessions": [{"git_revision": "40a507c81f2e+"}]}
    (changed,) = session_rows(run_of(PATH, environment=revised))
    assert changed["revision"] == "40a507c81f2e+", "files differed"
    assert hardware_text(Session(hardware=Hardware(cores=1))) == "1 core"
    assert session["versions"].startswith("python 3.11.7, vitnas 0.1.0")


def test_who_proposed_and_who_stopped() -> None:
    none = {"sampler": "ehvi", "pruner": {"name": "none"}}
    curve = {"sampler": "ehvi", "pruner": {"name": "curve", "confidence": 0.95}}
    found = dict(facts(run_of(PATH, environment={"sessions": [none, curve, curve]})))
    assert found["Proposed by"] == "ehvi"
    assert found["Stopped early by"] == "nobody; curve, confidence 0.95"


def test_what_is_not_known_is_left_out() -> None:
    bare = run_of(PATH, environment={"sessions": [{}]}, space={})
    assert [label for label, _ in facts(bare)] == ["Run", "Space"]
    assert set(session_rows(bare)[0].values()) == {"–"}
    session = Session(device="cpu", hardware=Hardware(cpu="Ryzen", cores=None))
    assert hardware_text(session) == "Ryzen"


def test_why_a_run_has_less_than_it_was_to_have() -> None:
    bare = run_of(PATH, trial(0), environment={}, num_trials=4)
    assert ended_text(bare) == ""
    replicate = trial(1, replicate_of=0)
    cut = replace(bare, environment=Environment(sessions=[Session(ended_by="the time is up")]))
    assert ended_text(cut) == "1 of 4 trials: the time is up"
    assert ended_text(replace(cut, num_trials=0)) == "1 trial: the time is up"
    cut = replace(cut, replicates=(replicate,))
    assert ended_text(cut) == "1 of 4 trials, 1 replicate: the time is up"
