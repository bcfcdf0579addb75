"""A long training for a run: whose network, on what, and what the run keeps of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import timm
import torch

from tests.engine.conftest import SMALL, make_space
from tests.report.runs import run_of, trial
from tests.training.conftest import fill_folder
from vitnas import api
from vitnas.config.baseline import Baseline
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import load_recipe
from vitnas.engine.search import run_search
from vitnas.errors import VitnasError
from vitnas.exported.card import name_of
from vitnas.exported.design import read_design, size_of_design
from vitnas.longer import FILE_NAME, setting_of
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


def test_without_a_model_all_is_the_runs(run: Run) -> None:
    first, proxy = run.complete[0], run.space["proxy"]
    plan = plan_for(run, first.number)
    assert plan.config.key == first.key
    assert plan.config.name == name_of(run, first)
    assert plan.identity() == replace(plan, config=first.network).identity(), "it resumes"
    assert plan.data.model_dump(mode="json") == run.space["data"]
    assert (plan.recipe.epochs, plan.recipe.lr) == (3 * proxy["epochs"], proxy["lr"])
    assert plan.recipe_name == "proxy"
    assert plan_for(run, first.number, epochs=7).recipe.epochs == 7


def test_a_recipe_replaces_the_runs(run: Run) -> None:
    plan = plan_for(run, run.complete[0].number, recipe="small", epochs=7)
    assert (plan.recipe.epochs, plan.recipe_name) == (7, "small")
    assert plan.recipe.lr == load_recipe("small").lr
    assert plan.data.model_dump(mode="json") == run.space["data"]


def test_a_model_that_is_the_trials_may_be_given(run: Run, tmp_path: Path) -> None:
    first = run.complete[0]
    save_config(first.network, tmp_path / "net.yaml")
    given = plan_for(run, first.number, tmp_path / "net.yaml").config
    assert (given.key, given.name) == (first.key, name_of(run, first))
    recipe = load_recipe("small").model_copy(update={"drop_path_rate": 0.05})
    plan = plan_for(run, first.number, tmp_path / "net.yaml", recipe)
    assert isinstance(plan.config, ModelConfig)
    assert plan.config.drop_path_rate == 0.05


def test_another_network_is_refused_with_the_trial_that_has_it(run: Run, tmp_path: Path) -> None:
    first, second, *_ = run.complete
    save_config(second.network, tmp_path / "net.yaml")
    line = f"net.yaml: is another network than trial {first.number} of .*run: .* -> .*"
    with pytest.raises(VitnasError, match=rf"{line}nearest: it is that of trial {second.number}\)"):
        plan_for(run, first.number, tmp_path / "net.yaml")
    tree = first.network.model_dump()
    tree["stages"][0]["mlp_ratio"] = 3.5
    save_config(ModelConfig.model_validate(tree), tmp_path / "net.yaml")
    with pytest.raises(VitnasError, match=r"stages\[0\].mlp_ratio: .* -> 3.5; .*own$"):
        plan_for(run, first.number, tmp_path / "net.yaml")


@pytest.mark.parametrize(
    ("number", "options", "message"),
    [
        (99, {}, r"run: there is no trial 99 \(nearest complete trial: 2\)"),
        (
            None,
            {},
            r"run: --for needs --trial and .*, or --baseline and .*; the knee is trial \d",
        ),
        (0, {"data": "digits"}, r"the images are those of .*run, split as there; drop --data"),
        (0, {"img_size": 16}, "drop --img-size"),
        (0, {"epochs": 0}, "epochs"),
        (0, {"score_on": "test"}, "drop --score-on"),
        (0, {"recipe": "smal"}, r"no such recipe.*\(nearest: small\)"),
        (0, {"model": "gone.yaml"}, "gone.yaml: no such file"),
    ],
)
def test_a_mistake_is_one_line(
    run: Run, number: int | None, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(VitnasError, match=message) as caught:
        plan_for(run, number, **options)
    assert "\n" not in str(caught.value)


def test_a_run_without_a_complete_trial_has_no_network(tmp_path: Path) -> None:
    for trials in ((), (trial(0, outcome=Outcome.STOPPED),)):
        with pytest.raises(VitnasError, match="no trial is complete yet, so there is no network"):
            plan_for(run_of(tmp_path, *trials), 0)


def test_a_trial_without_a_run_is_refused(tmp_path: Path) -> None:
    for model, number in ((None, None), (None, 3), ("sret_t", 3)):
        with pytest.raises(VitnasError, match="--for RUN and --trial or --baseline"):
            api.train(model, tmp_path / "out", trial=number)


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


@pytest.mark.slow
def test_the_result_goes_into_the_run(run: Run, tmp_path: Path) -> None:
    number, seen = run.complete[0].number, list[dict[str, Any]]()
    folder = api.train(
        None, tmp_path / "long", run=run, trial=number, epochs=2, device="cpu", seed=5,
        listener=seen.append,
    )  # fmt: skip
    (one,) = api.load_run(run.path).long.trainings
    assert (one.trial, one.key, one.epochs, one.seed) == (number, run.complete[0].key, 2, 5)
    assert (one.recipe, one.device, one.folder) == ("proxy", "cpu", str(folder))
    assert one.top1 == seen[-1]["top1"]
    assert (
        f"| top-1 on the test split | {one.test_top1:.2f} % |" in (folder / "README.md").read_text()
    )
    card = (folder / "README.md").read_text()
    assert "\n- network of run `" in card
    assert f"{run.name}-trial-{number}: {one.top1:.2f} % top-1 on the scoring split" in card
    assert f"name: {run.name}-trial-{number}\n" in (folder / "config.yaml").read_text()
    assert one.seconds == pytest.approx(sum(entry["seconds"] for entry in seen))


@pytest.mark.slow
def test_two_trainings_on_a_folder_of_images_at_the_same_time(tmp_path: Path) -> None:
    """Files are read anew in each epoch; the run keeps both results, of the same setting."""
    fill_folder(tmp_path / "pictures")
    data = {"name": "imagefolder", "root": str(tmp_path / "pictures")}
    model = {**make_space().to_tree()["model"], "in_chans": 3, "num_classes": 3}
    run = run_search(make_space(data=data, model=model), tmp_path / "run", replace(SMALL, trials=2))
    number = run.complete[0].number
    command = ["train", "--for", str(run.path), "--trial", str(number), "--epochs", "2"]
    trainings = [
        subprocess.Popen(
            [sys.executable, "-m", "vitnas", *command, "--to", str(tmp_path / seed), "--seed", seed]
        )
        for seed in ("4", "5")
    ]
    assert [one.wait() for one in trainings] == [0, 0]
    found = api.load_run(run.path).long
    assert not found.unread
    ((result,),) = found.settings
    assert (result.trial, sorted(result.seeds), result.epochs) == (number, [4, 5], 2)
    assert result.test_top1 is not None
    assert (tmp_path / "4" / "labels.txt").read_text().split() == ["blue", "green", "red"]


def test_a_folder_whose_name_is_no_text_loses_no_training(run: Run) -> None:
    number = run.complete[0].number
    plan = plan_for(run, number)
    keeping(run, number, plan, "cpu", "long\udcff")([{"top1": 50.0, "seconds": 1.0}], None)
    (one,) = api.load_run(run.path).long.trainings
    assert one.folder == r"long\udcff"


@pytest.mark.slow
def test_an_unfinished_training_is_not_in_the_run(run: Run, tmp_path: Path) -> None:
    """Killed after an epoch, then again between the run's line and the folder, it goes on."""
    number = run.complete[0].number

    def train(**more: Any) -> Path:
        options = {"run": run, "trial": number, "epochs": 2, "device": "cpu", **more}
        return api.train(None, tmp_path / "long", **options)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(listener=killed)
    assert not (run.path / FILE_NAME).exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vitnas.training.train.write_network", killed)
        with pytest.raises(KeyboardInterrupt):
            train()
    assert not (tmp_path / "long").exists()
    train()
    assert (run.path / FILE_NAME).read_text().count("\n") == 2
    assert len(api.load_run(run.path).long.trainings) == 1


@pytest.mark.slow
def test_other_images_than_the_runs_are_refused(run: Run, tmp_path: Path) -> None:
    number = run.complete[0].number
    told = run.environment.data.told()
    told["fingerprint"] = {**told["fingerprint"], "digest": "0" * 12}
    data = type(run.environment.data).model_validate(told)
    other = replace(run, environment=run.environment.model_copy(update={"data": data}))
    with pytest.raises(
        VitnasError, match="the images that train, score or test have changed since the run"
    ):
        api.train(None, tmp_path / "long", run=other, trial=number, epochs=1)
    assert not (tmp_path / "long.training").exists()
