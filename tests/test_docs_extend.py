"""docs/extend.md: its package is built and installed, and what it announces is searched with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import vitnas
from tests.diagnose.networks import MHSA, network
from vitnas import plugins
from vitnas.config.files import validate
from vitnas.config.mixers import _IMPORTED, mixer_named
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line
from vitnas.config.space import load_space
from vitnas.cost.closed_form import closed_form
from vitnas.cost.mixers import is_counted
from vitnas.cost.survey import survey
from vitnas.diagnose.images import data_named, show
from vitnas.diagnose.subject import subject_of
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.errors import ConfigError
from vitnas.report import write_report

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "extend.md").read_text()
FILES = re.findall(r"```\w+\n# (\S+\.\w+)\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the page's files; its package is installed beside it, and found by Python."""
    folder, target = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("site")
    for name, text in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target"]
    pip = [sys.executable, "-m", "pip", "install", *options, str(target), str(folder)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(target))
    plugins.announced.cache_clear()
    yield folder
    sys.path.remove(str(target))
    plugins.announced.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("vitnas_")]:
        del sys.modules[name]


SERIAL = SearchOptions(trials=2, backend="serial", gpus_per_trial=0, baselines=False)


@pytest.mark.slow
def test_the_data_set_of_the_page_is_searched(installed: Path, tmp_path: Path) -> None:
    space = load_space(installed / "shapes.yaml")
    assert "vitnas_shapes" not in sys.modules, "a name was checked by importing its package"
    run = run_search(space, tmp_path / "run", SERIAL)
    data = run.environment.data
    assert (data.name, data.num_classes) == ("shapes", 2)
    assert (data.num_train_images, data.num_test_images) == (160, 50)
    assert [trial.outcome.value for trial in run.trials] == ["complete", "complete"]
    assert all(trial.test_top1 is not None for trial in run.front)


@pytest.mark.slow
def test_the_mixer_and_the_sampler_of_the_page_are_searched(
    installed: Path, tmp_path: Path
) -> None:
    space = load_space(installed / "shift.yaml")
    options = replace(SERIAL, trials=6, sampler="nsga3")
    run = run_search(space, tmp_path / "run", options)
    assert {trial.outcome.value for trial in run.trials} <= {"complete", "duplicate"}
    shifts = [t for t in run.complete if t.network.stages[0].token_mixer == "shift"]
    assert shifts
    assert all("stages[0].token_mixer#1/stages[0].token_mixer.step" in t.params for t in shifts)
    vitnas.export(run, tmp_path / "net", trial=shifts[0].number)
    loaded = vitnas.load(tmp_path / "net").config
    assert isinstance(loaded, ModelConfig)
    assert loaded.key == shifts[0].network.key
    write_report(run)
    assert "1x shift " in (tmp_path / "run" / "report.md").read_text()
    with pytest.raises(ConfigError, match=r"sampler = 'nsga': no such sampler \(nearest: nsga3\)"):
        replace(SERIAL, sampler="nsga")


def test_a_name_and_its_path_are_one_network(installed: Path) -> None:
    tree: dict[str, Any] = {"img_size": 16, "stem": {"stride": 4}}
    keys = {
        validate(ModelConfig, {**tree, "stages": [{"embed_dim": 16, **stage}]}).key
        for stage in (
            {"token_mixer": "shift", "mixer_options": {"step": 2}},
            {"token_mixer": {"mixer": "vitnas_shapes.mixer:Shift", "step": 2}, "head_dim": 8},
        )
    }
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"token_mixer": "shft"}, r"token_mixer = 'shft': no such token mixer \(nearest: shift\)"),
        ({"token_mixer": {"mixer": "shift", "stepp": 2}}, r"mixer_options\.stepp.*nearest: step"),
        (
            {"token_mixer": "shift", "mixer_options": {"step": 9}},
            r"step = 9: .*nearest: 4",
        ),
        ({"token_mixer": "mhsa", "mixer_options": {"step": 2}}, "mhsa has no options"),
        ({"token_mixer": "os:system"}, "is no subclass of vitnas.nn.mixers.TokenMixer"),
        (
            {"token_mixer": "vitnas.nn.mixers:TokenMixer"},
            "has no method at, forward of its own: see vitnas.nn.mixers.TokenMixer",
        ),
        ({"token_mixer": "os:system('x')"}, r"a path is package\.module:Name"),
        ({"token_mixer": "nowhere.at:All"}, "the package nowhere is not installed here"),
        ({"token_mixer": "shift", "groups": [2]}, "is bound to token positions"),
    ],
)
def test_a_mistake_in_a_mixer_is_one_line(
    installed: Path, stage: dict[str, Any], message: str
) -> None:
    tree = {"img_size": 16, "stem": {"stride": 4}, "stages": [{"embed_dim": 16, **stage}]}
    with pytest.raises(ConfigError, match=message) as caught:
        validate(ModelConfig, tree)
    assert "\n" not in str(caught.value)


def test_a_mixer_without_closed_form_is_counted_and_says_so(installed: Path) -> None:
    from vitnas_shapes.mixer import Shift  # type: ignore[import-not-found]

    tree = {"img_size": 16, "stem": {"stride": 4}}
    tree["stages"] = [{"token_mixer": "shift", "embed_dim": 16, "depth": 2}]
    config = validate(ModelConfig, tree)
    with_formula, facts = closed_form(config), Shift.facts
    state = torch.get_rng_state()
    assert Shift.counted(config, 0, 16) == facts.cost(config, 0, 16)
    assert torch.equal(torch.get_rng_state(), state)
    found = mixer_named("shift")
    assert not is_counted("shift")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_IMPORTED, "shift", replace(found, facts=replace(facts, cost=None)))
        assert is_counted("shift")
        assert closed_form(config) == with_formula
        problems = survey(load_space(installed / "shift.yaml")).problems
    assert any(problem.startswith("shift has no closed form") for problem in problems)


def test_what_reads_anybodys_files_imports_nothing(installed: Path) -> None:
    tree = {"stages": [{"token_mixer": "some.body:Mixer", "embed_dim": 16}]}
    with plugins.closed():
        config = validate(ModelConfig, tree)
        assert one_line(config) == "1x Mixer 16"
    with pytest.raises(ConfigError, match="the package some is not installed"):
        validate(ModelConfig, tree)


@pytest.mark.slow
def test_the_contract_of_the_page_holds(installed: Path) -> None:
    site = next(folder for folder in sys.path if (Path(folder) / "vitnas_shapes").is_dir())
    path = os.pathsep.join([site, str(Path(__file__).resolve().parents[1])])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shift.py"]
    done = subprocess.run(
        command, cwd=installed, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def other_space(installed: Path, folder: Path, name: str, **model: int) -> Path:
    tree = yaml.safe_load((installed / "shapes.yaml").read_text())
    tree["data"]["name"] = name
    tree["model"] |= model
    (folder / "s.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    return folder / "s.yaml"


@pytest.mark.slow
def test_the_path_of_the_page_names_the_same_data(installed: Path, tmp_path: Path) -> None:
    assert 'name: "vitnas_shapes.data:shapes"' in PAGE
    space = load_space(other_space(installed, tmp_path, "vitnas_shapes.data:shapes"))
    run = run_search(space, tmp_path / "run", SERIAL)
    assert run.environment.data.num_classes == 2


@pytest.mark.parametrize(
    ("name", "model", "message"),
    [
        ("shape", {}, r"s\.yaml: data\.name = 'shape': no such data set \(nearest: shapes\)"),
        ("os.path:", {}, r"data\.name = 'os\.path:': a path is package\.module:Name"),
        ("vitnas_shapes.data:shape", {}, r"has no shape \(nearest: vitnas_shapes\.data:shapes\)"),
        ("vitnas_shapes.date:shapes", {}, "the package vitnas_shapes has no module"),
        ("shapes", {"num_classes": 3}, r"model\.num_classes = 3: these images of shapes have 2"),
        ("shapes", {"in_chans": 3}, r"model\.in_chans = 3: these images of shapes have 1"),
    ],
)
def test_a_mistake_is_one_line(
    installed: Path, tmp_path: Path, name: str, model: dict[str, int], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        run_search(load_space(other_space(installed, tmp_path, name, **model)),
                   tmp_path / "run", SERIAL)  # fmt: skip
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["shapes", "vitnas_shapes.data:shapes"])
def test_a_network_is_shown_its_images(installed: Path, name: str) -> None:
    model = network(MHSA, img_size=16, in_chans=1)
    shown = show(data_named(name), subject_of(model, "taker", "random"), 20)
    assert shown.images.x.shape == (20, 1, 16, 16)
    coloured = subject_of(network(MHSA, img_size=16, in_chans=3), "taker", "random")
    with pytest.raises(ConfigError, match="has images with 1 channel"):
        show(data_named(name), coloured, 20)
