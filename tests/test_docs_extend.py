"""docs/extend.md: its package is built and installed, and what it announces is searched with."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.diagnose.networks import MHSA, network
from vitnas import plugins
from vitnas.config.space import load_space
from vitnas.diagnose.images import data_named, show
from vitnas.diagnose.subject import subject_of
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.errors import ConfigError

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


SERIAL = SearchOptions(trials=2, backend="serial", gpus_per_trial=0)


def test_the_data_set_of_the_page_is_searched(installed: Path, tmp_path: Path) -> None:
    space = load_space(installed / "shapes.yaml")
    assert "vitnas_shapes" not in sys.modules, "a name was checked by importing its package"
    run = run_search(space, tmp_path / "run", SERIAL)
    data = run.environment["data"]
    assert (data["name"], data["num_classes"]) == ("shapes", 2)
    assert (data["num_train_images"], data["num_test_images"]) == (160, 50)
    assert [trial.outcome.value for trial in run.trials] == ["complete", "complete"]
    assert all(trial.test_top1 is not None for trial in run.front)


def other_space(installed: Path, folder: Path, name: str, **model: int) -> Path:
    tree = yaml.safe_load((installed / "shapes.yaml").read_text())
    tree["data"]["name"] = name
    tree["model"] |= model
    (folder / "s.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    return folder / "s.yaml"


def test_the_path_of_the_page_names_the_same_data(installed: Path, tmp_path: Path) -> None:
    assert 'name: "vitnas_shapes.data:shapes"' in PAGE
    space = load_space(other_space(installed, tmp_path, "vitnas_shapes.data:shapes"))
    run = run_search(space, tmp_path / "run", SERIAL)
    assert run.environment["data"]["num_classes"] == 2


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
