"""A long training for a run: whose network, on what, and what the run keeps of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import SMALL, make_space
from tests.report.runs import run_of, trial
from tests.training.conftest import fill_folder
from vitnas import api
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import load_recipe
from vitnas.engine.search import run_search
from vitnas.errors import VitnasError
from vitnas.exported.card import name_of
from vitnas.longer import FILE_NAME
from vitnas.records import Outcome
from vitnas.run import Run
from vitnas.trained_long import keeping, plan_for


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


def test_another_learning_rate_is_kept_and_the_setting_is_the_same(run: Run) -> None:
    number, own = run.complete[0].number, run.space["proxy"]["lr"]
    for lr in (None, own, 2 * own):
        plan = plan_for(run, number, lr=lr)
        assert plan.recipe.lr == (lr or own)
        keeping(run, number, plan, "cpu", "long")([{"top1": 50.0, "seconds": 1.0}], None)
    found = api.load_run(run.path).long.trainings
    assert [one.lr for one in found] == [None, 2 * own], "the first two are the same training"
    assert len({one.setting for one in found}) == 1


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
