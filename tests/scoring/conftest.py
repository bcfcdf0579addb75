"""One network that was trained on digits, and one on a folder of colours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

import vitnas
from tests.training.conftest import fill_folder
from vitnas import api
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import Recipe
from vitnas.exported.programs import write_programs

SHORT = Recipe.model_validate(
    {"epochs": 2, "train_fraction": 0.2, "lr": 3e-3, "warmup_epochs": 1.0, "batch_size": 64}
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def digits_net(tiny_config: ModelConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `vitnas train` on digits, with model.py."""
    place = tmp_path_factory.mktemp("digits_net")
    save_config(tiny_config, place / "net.yaml")
    formats = ("py",)
    return api.train(place / "net.yaml", place / "net", recipe=SHORT, device="cpu", formats=formats)


@pytest.fixture(scope="session")
def digits_program(digits_net: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder with model.pt2, which takes seconds to write."""
    folder = shutil.copytree(digits_net, tmp_path_factory.mktemp("digits_program") / "net")
    assert write_programs(folder, vitnas.load(folder), ("pt2",)) == {}  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="session")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images: blue, green and red, in train/ and val/."""
    root = tmp_path_factory.mktemp("colours")
    fill_folder(root)
    return root


@pytest.fixture(scope="session")
def colours_net(
    tiny_config: ModelConfig, colours: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder of `vitnas train` on the colours, with model.py."""
    place = tmp_path_factory.mktemp("colours_net")
    tree = tiny_config.model_dump() | {"in_chans": 3, "num_classes": 3, "img_size": 16}
    save_config(ModelConfig.model_validate(tree), place / "net.yaml")
    recipe = Recipe.model_validate(SHORT.model_dump() | {"train_fraction": 1.0, "epochs": 3})
    to, data = place / "net", str(colours)
    return api.train(
        place / "net.yaml", to, data=data, recipe=recipe, device="cpu", formats=("py",)
    )
