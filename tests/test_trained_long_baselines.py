"""A long training of a baseline for a run: which one, on what, and how it is compared."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import timm
import torch

from vitnas import api
from vitnas.config.baseline import Baseline
from vitnas.config.recipe import load_recipe
from vitnas.errors import VitnasError
from vitnas.exported.design import read_design, size_of_design
from vitnas.longer import setting_of
from vitnas.records import BaselineRecord, Outcome
from vitnas.report.page import render_pages
from vitnas.run import Run
from vitnas.trained_long import keeping, plan_for

SMALL_LR = load_recipe("small").lr
VGG = Baseline(family="vgg", width=4, image_hw=(8, 8), in_chans=1, num_classes=10)


@pytest.fixture
def run(searched: Run, tmp_path: Path) -> Run:
    """A real run in a folder of its own."""
    shutil.copytree(searched.path, tmp_path / "run")
    return api.load_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "number", "message"),
    [
        ("vg-5", None, r"--baseline = 'vg-5': no such family; known are vgg, .*nearest: vgg"),
        ("vgg", None, r"'vgg': give a width, as vgg-16, or --trial N for one of like FLOPs"),
        ("vgg-5", 0, r"'vgg-5': give a width, as vgg-16, or --trial N for one of like FLOPs"),
        ("vgg-0", None, r"'vgg-0': the width is a whole number from 1 to 1,000,000"),
        ("vgg-x", None, r"'vgg-x': the width is a whole number from 1 to 1,000,000"),
        ("vgg", 99, r"there is no trial 99"),
        ("timm:test_resne", None, r"--baseline.model = 'test_resne': timm has .*: test_resnet"),
        ("timm:", None, r"--baseline.model = '': is required"),
        ("timm:test_vit", None, r"--baseline.img_size = \[8, 8\]: test_vit has no token"),
        ("timm:levit_128s", None, r"--baseline.img_size: levit_128s does not take .* 8x8 px: "),
        ("timm:test_resnet", 0, r"--baseline = 'timm:test_resnet': .* drop --trial"),
    ],
)
def test_a_wrong_baseline_is_one_line(
    run: Run, name: str, number: int | None, message: str
) -> None:
    with pytest.raises(VitnasError, match=message):
        plan_for(run, number, baseline=name)


def test_a_model_is_no_baseline(run: Run, tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match="give MODEL or --baseline, not both"):
        plan_for(run, None, "net.yaml", baseline="vgg-4")
    with pytest.raises(VitnasError, match="--for RUN and --trial or --baseline"):
        api.train("sret_t", tmp_path / "out", baseline="vgg-4")


def test_a_baseline_is_trained_as_a_trial_is(run: Run) -> None:
    """Recipe and images are those of the run, so that both results can be compared."""
    ours = plan_for(run, run.complete[0].number)
    theirs = plan_for(run, None, baseline="vgg-4")
    assert theirs.config == VGG
    assert setting_of(theirs.identity()) == setting_of(ours.identity())
    assert theirs.origin.endswith(f", baseline vgg-4, space {run.name}")


def test_a_baseline_has_the_learning_rate_of_its_family(run: Run) -> None:
    """That of the next width; the setting is the same, so that both results can be compared."""
    own = run.space["proxy"]["lr"]
    facts: dict[str, Any] = {"outcome": Outcome.COMPLETE, "flops": 10**4, "curve": (90.0,)}
    rates = {3: 2 * own, 40: own / 2}
    found = tuple(
        BaselineRecord(network=VGG.changed(width=width), lr=lr, **facts)
        for width, lr in rates.items()
    )
    searched, number = replace(run, baselines=found), run.complete[0].number
    plan = plan_for(searched, None, baseline="vgg-4")
    assert plan.recipe.lr == 2 * own
    assert plan_for(searched, None, baseline="vgg-39").recipe.lr == own / 2
    lost = replace(found[0], outcome=Outcome.DIVERGED), found[1]
    for kept, lr in ((lost, own / 2), (lost[:1], own)):
        diverged = replace(run, baselines=kept)
        assert plan_for(diverged, None, baseline="vgg-4").recipe.lr == lr, "no rate that diverges"
    assert plan_for(searched, None, baseline="dwcnn-4").recipe.lr == own
    assert plan_for(searched, None, baseline="vgg-4", recipe="small").recipe.lr == SMALL_LR
    for one in (plan, plan_for(searched, number)):
        keeping(searched, number, one, "cpu", "out")([{"top1": 80.0, "seconds": 1.0}], 79.0)
    ((ours, theirs),) = api.load_run(run.path).long.settings
    assert (ours.lr, theirs.lr) == (None, 2 * own)
    assert theirs.started == f"baseline vgg-4 at lr {2 * own:g}"


def test_a_baseline_has_the_largest_images_of_a_run_of_several_sizes(run: Run) -> None:
    """As the run's own baselines have; it had those of whichever trial came first."""
    first, *_, last = run.complete
    large = replace(last, config={**last.config, "img_size": [16, 16]})
    changed = tuple(large if t.number == last.number else t for t in run.trials)
    several = replace(run, trials=changed, baselines=())
    assert several.complete[0].network.image_hw == (8, 8)
    for number, name in ((None, "vgg-4"), (first.number, "vgg"), (None, "timm:test_efficientnet")):
        assert plan_for(several, number, baseline=name).config.image_hw == (16, 16)
    own = BaselineRecord(network=VGG.changed(image_hw=(32, 32)), outcome=Outcome.COMPLETE)
    assert plan_for(replace(run, baselines=(own,)), None, baseline="vgg-4").config == own.network


def test_a_family_alone_has_the_flops_of_the_trial(run: Run) -> None:
    for one in run.complete:
        plan = plan_for(run, one.number, baseline="vgg")
        assert size_of_design(plan.config).flops == pytest.approx(one.flops, rel=0.5)


@pytest.mark.slow
def test_a_baseline_s_result_goes_into_the_run(run: Run, tmp_path: Path) -> None:
    """Its folder is loaded, scored and trained on as others are."""
    number = run.complete[0].number
    for family in (None, "vgg"):
        to = tmp_path / (family or "ours")
        api.train(None, to, run=run, trial=number, baseline=family, epochs=2, device="cpu")
    folder, run = tmp_path / "vgg", api.load_run(run.path)
    ours, theirs = run.long.settings[0]
    assert (ours.called, theirs.trial) == (f"trial {number}", None)
    assert theirs.flops == pytest.approx(run.complete[0].flops, rel=0.5)
    assert theirs.test_top1 is not None
    assert theirs.called in (folder / "README.md").read_text()
    (again,) = [api.evaluate(str(folder), str(run.space["data"]["name"]), score_on="test")]
    assert again.top1 == pytest.approx(theirs.test_top1, abs=1e-4)
    assert theirs.called in render_pages(run, b"").html
    api.train(folder, tmp_path / "more", data="digits", init_from=folder, epochs=1, device="cpu")


def test_a_network_of_timm_has_the_run_s_images(run: Run) -> None:
    plan = plan_for(run, None, baseline="timm:test_efficientnet.r160_in1k")
    assert plan.config.name == "test_efficientnet"
    assert (plan.config.image_hw, plan.config.in_chans, plan.config.num_classes) == ((8, 8), 1, 10)
    ours = plan_for(run, run.complete[0].number)
    assert setting_of(plan.identity()) == setting_of(ours.identity())
    assert plan.origin.endswith(f", baseline timm:test_efficientnet, space {run.name}")


@pytest.mark.slow
def test_the_report_compares_with_published_weights(run: Run, tmp_path: Path) -> None:
    """They are in a file here, as timm would load them."""
    torch.manual_seed(0)
    torch.save(timm.create_model("test_efficientnet").state_dict(), tmp_path / "weights.pth")
    start = f"timm:test_efficientnet:{tmp_path / 'weights.pth'}"
    number = run.complete[0].number
    api.train(None, tmp_path / "ours", run=run, trial=number, epochs=1, device="cpu")
    folder = api.train(
        None, tmp_path / "theirs", run=run, baseline="timm:test_efficientnet", epochs=1,
        device="cpu", init_from=start,
    )  # fmt: skip
    run = api.load_run(run.path)
    theirs = next(one for group in run.long.settings for one in group if one.trial is None)
    assert theirs.started == f"baseline timm:test_efficientnet from the weights {start}"
    assert theirs.flops == size_of_design(read_design(folder)).flops
    assert theirs.started in render_pages(run, b"").html
    (again,) = [api.evaluate(str(folder), str(run.space["data"]["name"]), score_on="test")]
    assert again.top1 == pytest.approx(theirs.test_top1, abs=1e-4)
    api.train(folder, tmp_path / "more", data="digits", init_from=folder, epochs=1, device="cpu")
    api.train(
        folder, tmp_path / "larger", data="digits", init_from=folder, img_size=16, epochs=1,
        device="cpu",
    )  # fmt: skip
