"""What is trained to confirm a front."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import SPACE, reference, run_of, trial
from tests.test_longer import of_baseline, training
from vitnas.baselines.sizes import nearest
from vitnas.confirmation.jobs import FOLDER, jobs_of
from vitnas.confirmation.options import ConfirmOptions
from vitnas.errors import VitnasError
from vitnas.longer import PROXY, add
from vitnas.records import BaselineRecord, Outcome
from vitnas.run import Run

FRONT = tuple(
    trial(n, 60.0 + n, flops, seconds=10.0 * (n + 1), curve=(50.0, 60.0 + n))
    for n, flops in enumerate((3_000_000, 10_000_000, 30_000_000, 100_000_000))
)


def member(family: str, flops: int, top1: float, **more: Any) -> BaselineRecord:
    """The member of a family nearest to these FLOPs."""
    found = nearest(reference(family), flops)
    assert found is not None
    facts: dict[str, Any] = {"outcome": Outcome.COMPLETE, "curve": (top1,), **more}
    return BaselineRecord(network=found.baseline, flops=found.flops, **facts)


def run_with(*baselines: BaselineRecord, lr: float | None = 0.01) -> Run:
    space = SPACE if lr is None else {**SPACE, "proxy": {"lr": lr, "epochs": 2}}
    return run_of(Path("run"), *FRONT, baselines=baselines, space=space)


def test_networks_of_the_front_stand_against_the_best_family_at_their_flops() -> None:
    run = run_with(
        *(member("vgg", flops, top1) for flops, top1 in ((3_000_000, 90.0), (10**8, 20.0))),
        *(member("resnet", flops, top1) for flops, top1 in ((3_000_000, 20.0), (10**8, 90.0))),
    )
    jobs, lines = jobs_of(run, ConfirmOptions(networks=2, families=1))
    assert not lines
    assert {job.trial for job in jobs} == {0, 3, None}
    assert {job.baseline.partition("-")[0] for job in jobs} == {"", "vgg", "resnet"}
    assert {job.lr for job in jobs if job.baseline} == {0.01}
    assert {job.epochs for job in jobs} == {6}, "three times those of the run"
    assert [job.seconds for job in jobs] == sorted((job.seconds for job in jobs), reverse=True)


def test_the_best_family_of_short_trainings_need_not_be_that_of_long_ones() -> None:
    tops = {"vgg": 90.0, "resnet": 80.0, "convnext": 70.0}
    run = run_with(*(member(family, 7 * 10**6, top1) for family, top1 in tops.items()))
    for number, names in ((1, {"vgg"}), (2, {"vgg", "resnet"}), (9, set(tops))):
        jobs, _ = jobs_of(run, ConfirmOptions(trial=(1,), families=number))
        assert {job.baseline.partition("-")[0] for job in jobs if job.baseline} == names
    assert ConfirmOptions().families == 2


def test_a_baseline_is_trained_at_its_own_rate_and_at_that_of_the_trials() -> None:
    run = run_with(member("vgg", 10**7, 90.0, lr=0.04, seconds=3.0))
    jobs, _ = jobs_of(run, ConfirmOptions(trial=(1,), epochs=5, seeds=2))
    assert sorted(job.called for job in jobs if job.baseline) == [
        name for rate in ("0.01", "0.04") for name in [f"{run.baselines[0].name} at lr {rate}"] * 2
    ]
    assert {job.seconds for job in jobs} == {50.0, 15.0}
    folders = {job.folder(run.path) for job in jobs}
    assert len(folders) == len(jobs) == 8
    name = f"{run.baselines[0].name}-at-lr-0.01-epochs-5-seed-1"
    assert run.path / FOLDER / name in folders


def test_a_network_is_trained_at_as_many_rates_as_a_baseline() -> None:
    run = run_with(
        member("vgg", 10**7, 90.0),
        member("resnet", 10**7, 80.0, lr=0.04),
        member("convnext", 10**7, 70.0, lr=0.02),
    )
    for families, rates in ((1, {None}), (2, {None, 0.04}), (3, {None, 0.04})):
        jobs, _ = jobs_of(run, ConfirmOptions(trial=(1,), epochs=5, families=families))
        assert {job.lr for job in jobs if job.trial == 1} == rates
    jobs, _ = jobs_of(run, ConfirmOptions(trial=(1,), epochs=5, seeds=2))
    own = [job for job in jobs if job.trial == 1]
    assert [job.seed for job in own] == [0, 1, 0, 1]
    names = [
        f"trial-1{rate}-epochs-5-seed-{seed}" for rate in ("", "-at-lr-0.04") for seed in (0, 1)
    ]
    assert [job.folder(run.path) for job in own] == [run.path / FOLDER / name for name in names]


def test_what_the_run_has_is_done(tmp_path: Path) -> None:
    run = replace(run_with(member("vgg", 10**7, 90.0, lr=0.04)), path=tmp_path)
    jobs, _ = jobs_of(run, ConfirmOptions(trial=(1,), epochs=30))
    ours, at_theirs = (job for job in jobs if job.trial == 1)
    own, theirs = sorted((job for job in jobs if job.baseline), key=lambda job: job.lr or 0.0)
    assert not any(job.is_done(run) for job in jobs)
    facts: dict[str, Any] = {"recipe": PROXY, "epochs": 30, "seed": 0}
    add(tmp_path, training(1, key=FRONT[1].key, **facts))
    baseline = {"key": run.baselines[0].key, "flops": run.baselines[0].flops}
    add(tmp_path, of_baseline(theirs.baseline, lr=0.04, **baseline, **facts))
    again = replace(run)
    known = [job.is_done(again) for job in (ours, at_theirs, own, theirs)]
    assert known == [True, False, False, True]
    add(tmp_path, of_baseline(own.baseline, **baseline, **facts))
    assert own.is_done(replace(run))
    (ours.folder(tmp_path).parent).mkdir()
    ours.folder(tmp_path).with_name(f"{ours.folder(tmp_path).name}.training").mkdir()
    assert not ours.is_done(again), "it was killed before its network was written"
    ours.folder(tmp_path).mkdir()
    assert ours.is_done(again), "it was killed after that, and its folder takes no other network"


def test_two_networks_may_stand_against_one_baseline() -> None:
    close = [trial(n, 60.0 + n, 10_000_000 + n) for n in range(2)]
    run = run_of(Path("run"), *close, baselines=(member("vgg", 10**7, 90.0),))
    jobs, _ = jobs_of(run, ConfirmOptions(networks=2))
    assert len(jobs) == 3


def test_without_baselines_the_first_family_is_taken() -> None:
    jobs, _ = jobs_of(run_with(lr=None), ConfirmOptions(networks=1))
    assert [job.baseline.partition("-")[0] for job in jobs if job.baseline] == ["vgg"]
    assert {job.lr for job in jobs} == {None}


def test_a_network_without_a_baseline_of_like_flops_stands_alone() -> None:
    run = run_of(Path("run"), trial(0, 50.0, 10))
    jobs, (line,) = jobs_of(run, ConfirmOptions())
    assert [job.called for job in jobs] == ["trial 0"]
    assert line == "trial 0 stands alone: no baseline has about 10 FLOPs"


def test_what_cannot_be_confirmed_is_one_line() -> None:
    with pytest.raises(VitnasError, match="no trial is complete yet, so there is no front"):
        jobs_of(run_of(Path("run"), trial(0, outcome=Outcome.STOPPED)), ConfirmOptions())
    with pytest.raises(VitnasError, match=r"there is no trial 9 \(nearest complete trial: 3\)"):
        jobs_of(run_with(), ConfirmOptions(trial=(9,)))
