"""Spaces that extend another one: what they take from it, and what is wrong with a base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.trees import TREE
from vitnas.config.data import DataConfig
from vitnas.config.data_names import read_data
from vitnas.config.differences import differences
from vitnas.config.files import dump_yaml
from vitnas.config.space import load_space
from vitnas.config.space_files import find_space, shipped_spaces
from vitnas.errors import ConfigError


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.yaml"
    path.write_text(dump_yaml(TREE))
    return path


def view(folder: Path, **fields: Any) -> Path:
    path = folder / "view.yaml"
    path.write_text(dump_yaml({"name": "view", "extends": "base.yaml", **fields}))
    return path


def test_a_space_is_its_base_with_what_it_changes(base: Path) -> None:
    depth = {"int": [2, 3]}
    stage = {"depth": depth, "embed_dim": 32}
    space = load_space(view(base.parent, model={"groups": "[1]", "stages": [stage]}))
    assert space.name == "view"
    assert space.config.data == load_space(base).config.data
    changed = differences(load_space(base).config.model, space.config.model)
    assert [line.partition(":")[0] for line in changed] == [
        "groups",
        "stages[0].depth.int[0]",
        "stages[0].embed_dim",
    ]


def test_a_space_has_fields_that_its_base_leaves_out(base: Path) -> None:
    """`head: {norm: none}` was "no key of base.yaml", so that the whole base had to be repeated."""
    own = {"groups": "[1]", "head": {"norm": "none"}, "stages": [{"kernel_size": 5}]}
    example = load_space(view(base.parent, model=own)).example
    assert "head" not in TREE["model"]
    assert example.head.norm == "none"
    assert example.stages[0].kernel_size == 5


def test_the_views_on_the_page_are_spaces(tmp_path: Path) -> None:
    page = (next(iter(shipped_spaces().values())).parent / "README.md").read_text(encoding="utf-8")
    section = page.partition("## A space that extends another one")[2].partition("\n## ")[0]
    examples = [part.partition("```")[0] for part in section.split("```yaml\n")[1:]]
    assert len(examples) == 2
    for number, text in enumerate(examples):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        assert load_space(path).example


def test_a_proxy_is_its_base_s_with_what_it_changes(base: Path) -> None:
    """`proxy: {epochs: 20}` had dropped the base's optimizer and rate without a word."""
    base.write_text(
        dump_yaml({**TREE, "proxy": {"lr": 0.25, "distill": {"temperature": 2.0, "teacher": "a"}}})
    )
    other = {"epochs": 7, "distill": {"teacher": "b"}}
    proxy = load_space(view(base.parent, proxy=other, model={"groups": "[1]"})).config.proxy
    assert (proxy.epochs, proxy.lr) == (7, 0.25)
    assert (proxy.distill.teacher, proxy.distill.temperature) == ("b", 2.0)


def test_limits_and_data_replace_those_of_the_base(base: Path) -> None:
    base.write_text(dump_yaml({**TREE, "limits": {"flops": {"max": 1e6}}}))
    limits = {"num_params": {"max": 2e5}}
    space = load_space(view(base.parent, limits=limits, model={"groups": "[1]"}))
    assert space.config.limits.flops.max is None


def test_a_recipe_replaces_the_base_s_proxy(base: Path) -> None:
    base.write_text(dump_yaml({**TREE, "proxy": {"lr": 0.25, "epochs": 9}}))
    proxy = {"recipe": "deepvit", "epochs": 6}
    found = load_space(view(base.parent, proxy=proxy, model={"groups": "[1]"})).config.proxy
    base.write_text(dump_yaml({**TREE, "proxy": proxy}))
    assert found == load_space(base).config.proxy
    assert found.lr != 0.25


def test_a_base_s_recipe_is_shortened_for_the_view_s_epochs(base: Path) -> None:
    (base.parent / "mine.yaml").write_text("{lr: 0.25, epochs: 8, warmup_epochs: 2.0}\n")
    base.write_text(dump_yaml({**TREE, "proxy": {"recipe": "mine.yaml", "epochs": 8}}))
    folder = base.parent / "views"
    folder.mkdir()
    path = view(folder, extends="../base.yaml", proxy={"epochs": 4}, model={"groups": "[1]"})
    proxy = load_space(path).config.proxy
    assert (proxy.epochs, proxy.lr, proxy.warmup_epochs) == (4, 0.25, 1.0)


def test_a_shipped_space_can_be_extended(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nextends: digits\nmodel: {stem: {stride: 2}}\n")
    assert load_space(path).example.stem.stride == 2


def test_other_stages_replace_the_base_s(base: Path) -> None:
    stages = [{"token_mixer": "pool", "embed_dim": 8}, {"token_mixer": "mlp", "embed_dim": 8}]
    space = load_space(view(base.parent, model={"groups": "[1][1]", "stages": stages}))
    assert [stage.token_mixer for stage in space.example.stages] == ["pool", "mlp"]


def test_a_stored_space_needs_no_base(base: Path, tmp_path: Path) -> None:
    space = load_space(view(base.parent, model={"groups": "[1]"}))
    stored = tmp_path / "run" / "space.yaml"
    stored.parent.mkdir()
    stored.write_text(space.text)
    base.unlink()
    assert load_space(stored).to_tree() == space.to_tree()
    assert "extends" not in space.to_tree()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"extends": "bse.yaml"}, "extends = 'bse.yaml': no such file; a path starts at"),
        ({"extends": "digit"}, "extends = 'digit': no such file, and no shipped space of that"),
        ({"extends": "."}, "view.yaml: extends = '.': no such file; a path starts at"),
        ({"extends": 3}, "extends = 3: must name a shipped space or a space file"),
        ({"extends": "view.yaml"}, "extends = 'view.yaml': a space cannot extend itself"),
        ({"extends": "other.yaml"}, "other.yaml: extends = './view.yaml': extends a space that"),
        (
            {"model": {"stages": [{"dept": 2}]}},
            "view.yaml: model.stages[0].dept = 2: unknown key (nearest: depth)",
        ),
        ({"model": {"groups": "[1][1]"}}, "view.yaml: model.groups = '[1][1]': 2 brackets for 1"),
        ({"modle": {}}, "view.yaml: modle = {}: unknown key (nearest: model)"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(base: Path, fields: dict[str, Any], expected: str) -> None:
    (base.parent / "other.yaml").write_text("name: other\nextends: ./view.yaml\n")
    with pytest.raises(ConfigError) as error:
        load_space(view(base.parent, **fields))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_every_shipped_space_has_the_name_of_its_file() -> None:
    for name, path in shipped_spaces().items():
        assert find_space(name) == path
        assert load_space(path).name == name.replace("/", "_")


def test_a_folder_in_place_of_a_space_file(tmp_path: Path) -> None:
    """It was said to be a directory, and a stranger's first try is the folder of the images."""
    images(tmp_path / "my leaves", "ash", "elm")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "space.yaml").write_text("extends: digits\n")
    (tmp_path / "images_64").mkdir()
    for name, said in (
        ("my leaves", "holds images, and a space is a file (nearest: images_64 --data '{}')"),
        ("run", "is a run, and a space is a file (nearest: {}/space.yaml)"),
        ("images_64", "is a folder, and a space is a file"),
    ):
        with pytest.raises(ConfigError) as error:
            load_space(tmp_path / name)
        assert str(error.value) == f"{tmp_path / name}: {said.format(tmp_path / name)}"


def images(folder: Path, *classes: str) -> DataConfig:
    for name in classes:
        (folder / "train" / name).mkdir(parents=True)
    return read_data(str(folder))


def test_a_space_with_a_folder_of_images_in_place_of_its_own(tmp_path: Path) -> None:
    data = images(tmp_path / "my leaves", "ash", "elm", "oak")
    space = load_space("images_64", data)
    assert space.name == "images_64-my-leaves"
    assert space.config.description == "the space images_64 with the images of my leaves"
    assert space.config.data == data
    assert (space.example.num_classes, space.example.in_chans) == (3, 3)
    own = load_space("images_64")
    assert space.config.proxy == own.config.proxy
    assert list(differences(own.config.model, space.config.model)) == [
        "in_chans: null -> 3",
        "num_classes: 10 -> 3",
    ]


def test_a_space_with_another_data_set(tmp_path: Path) -> None:
    space = load_space("images_64", read_data("fashion_mnist"))
    assert space.name == "images_64-fashion_mnist"
    assert (space.example.num_classes, space.example.in_chans) == (10, 1)


def test_with_images_that_are_not_there_a_space_keeps_its_classes(tmp_path: Path) -> None:
    space = load_space("images_64", DataConfig(name="imagefolder", root=str(tmp_path / "gone")))
    assert space.example.num_classes == 10


def test_a_long_folder_makes_no_name_that_is_too_long(tmp_path: Path) -> None:
    data = images(tmp_path / ("x" * 200), "ash", "elm")
    assert len(load_space("images_64", data).name) == 100
