"""A trained network of a run: kept weights, the same training again, and a longer one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

from vitnas.errors import DataError, RunError
from vitnas.records import TrialRecord
from vitnas.run import Run
from vitnas.trained import kept_subject, weights_of


@pytest.fixture
def member(searched: Run) -> TrialRecord:
    """A network of the front."""
    return searched.front[0]


def test_kept_weights_are_read_without_a_word(searched: Run, member: TrialRecord) -> None:
    said: list[str] = []
    weights, facts = weights_of(searched, member, None, said.append)
    assert facts["file"].read_bytes() == weights
    assert not said


def test_the_same_training_again_gives_the_same_weights(searched: Run, member: TrialRecord) -> None:
    said: list[str] = []
    kept, _ = weights_of(searched, member, None, said.append)
    again, facts = weights_of(searched, member, member.epochs, said.append)
    assert said[0].startswith(f"trial {member.number}: training it anew for 3 epochs, about ")
    assert [line[:9] for line in said[1:]] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    scores = {"epochs": 3, "top1": member.top1, "test_top1": member.test_top1}
    assert facts == pytest.approx(scores, abs=1e-4)
    old, new = (safetensors.torch.load(content) for content in (kept, again))
    assert all(torch.equal(old[name], new[name]) for name in old)


def test_other_images_than_the_run_s_train_nothing_again(
    searched: Run, member: TrialRecord
) -> None:
    """The folder would say the run's mean and deviation, and its top-1 beside the new one."""
    told = searched.environment
    before = {**(told.data.fingerprint or {}), "digest": "of other pixels"}
    data = told.data.model_copy(update={"fingerprint": before})
    run = replace(searched, environment=told.model_copy(update={"data": data}))
    with pytest.raises(DataError, match=r"digits: the images .* have changed since the run began"):
        weights_of(run, member, 1, print)


def test_a_trial_is_looked_into_with_its_kept_weights(searched: Run, member: TrialRecord) -> None:
    subject, told = kept_subject(searched, member), searched.environment.data
    kept, _ = weights_of(searched, member, None, print)
    assert subject.name == f"tiny_trial_{member.number}"
    assert (subject.mean, subject.std) == (told.mean, told.std)
    assert subject.network.label_names == ()
    for name, tensor in safetensors.torch.load(kept).items():
        assert torch.equal(subject.network.state_dict()[name], tensor)
    named = told.model_copy(update={"classes": ["b", "a"]})
    run = replace(searched, environment=searched.environment.model_copy(update={"data": named}))
    assert kept_subject(run, member).network.label_names == ("b", "a")


def test_weights_that_are_not_kept_name_the_command(searched: Run, member: TrialRecord) -> None:
    with pytest.raises(RunError, match=r"trial 99 are not kept .* --trial 99 --to DIR trains"):
        kept_subject(searched, replace(member, number=99))


def test_a_network_that_came_late_to_the_front_is_told_so(
    searched: Run, member: TrialRecord, tmp_path: Path
) -> None:
    """Replicates may bring it there when its weights are gone."""
    with pytest.raises(
        RunError, match=r"not kept \(it came to the front when they were deleted\):"
    ):
        kept_subject(replace(searched, path=tmp_path), member)
