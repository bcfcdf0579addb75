"""Space files: where they are, and their trees with what they take from the spaces they extend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitnas.config.data import DataConfig
from vitnas.config.files import exists, is_file, read_yaml
from vitnas.config.grammar import is_axis
from vitnas.config.training import with_fields, with_recipe
from vitnas.errors import ConfigError, nearest_name, typed
from vitnas.files import is_folder

LONGEST_NAME = 100
"""Characters of the name of a space."""
SPACE_OF_RUN = "space.yaml"
"""The space of a run, in its folder."""


def shipped_spaces() -> dict[str, Path]:
    """The spaces that come with vitnas, by name; those in a folder as `small/bvit_table1`."""
    package = Path(__file__).resolve().parents[1]
    installed, checkout = package / "spaces", package.parent / "space"
    folder = installed if installed.is_dir() else checkout
    paths = sorted(folder.rglob("*.yaml"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def find_space(path: str | Path) -> Path:
    """The file that `path` names: itself, or the shipped space of that name."""
    shipped = shipped_spaces()
    is_there = exists(path)
    if str(path) in shipped and not (is_there and Path(path).is_file()):
        return shipped[str(path)]
    if is_there or Path(path).suffix:
        return Path(path)
    names = [name for name in shipped if "/" not in name]
    raise ConfigError(
        f"no such file, and no shipped space of that name: {', '.join(names)}, and in small/",
        file=path,
        nearest=nearest_name(str(path), shipped),
    )


def refuse_folder(path: Path) -> None:
    """Refuse a folder in place of a space file, and say how what it holds is given.

    Raises:
        ConfigError: it is one.
    """
    if not is_folder(path):
        return
    rule, nearest = "is a folder, and a space is a file", None
    if is_folder(path / "train"):
        rule, nearest = "holds images, and a space is a file", f"images_64 --data {typed(path)}"
    elif is_file(path / SPACE_OF_RUN):
        rule, nearest = "is a run, and a space is a file", typed(path / SPACE_OF_RUN)
    raise ConfigError(rule, file=path, nearest=nearest)


def read_space(path: Path) -> dict[str, Any]:
    """The tree of a space file; a space that extends another one has all of that one's fields, and
    a proxy those of the recipe that it names.

    Raises:
        ConfigError: a file cannot be read, a base is missing or extends what extends it, or there
            is no such recipe.
    """
    tree, names_recipe = _read(path, ())
    if "proxy" in tree:
        tree["proxy"] = with_recipe(tree["proxy"], names_recipe)
    return tree


def on_other_data(tree: Mapping[str, Any], data: DataConfig) -> dict[str, Any]:
    """The tree of a space with other images; it has another name, so it is another run.

    The networks get the classes and channels of the images, as far as these are known.
    """
    name = tree.get("name")
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", data.called)
    sizes = {"num_classes": data.count_classes(), "in_chans": data.facts.in_chans}
    known = {field: size for field, size in sizes.items() if size is not None}
    return {
        **tree,
        "name": f"{name}-{slug}"[:LONGEST_NAME] if isinstance(name, str) else name,
        "description": f"the space {name} with the images of {data.called}",
        "data": data.model_dump(mode="json"),
        "model": merged(tree.get("model"), known),
    }


def _read(path: Path, before: tuple[Path, ...]) -> tuple[dict[str, Any], Path]:
    """The tree without the recipe's fields, and the file whose proxy names the recipe, if any does.

    `before` are the files that extend this one, the last first.
    """
    tree = read_yaml(path)
    if tree.get("extends") is None:
        return tree, path
    base, names_recipe = _read(_find_base(path, tree["extends"], before), (path, *before))
    proxy = tree.get("proxy", {})
    if isinstance(proxy, dict) and "recipe" not in proxy:
        tree["proxy"] = with_fields(base.get("proxy", {}), proxy)
        return _extended(base, tree), names_recipe
    return _extended(base, tree), path


def _find_base(path: Path, name: Any, before: tuple[Path, ...]) -> Path:
    def wrong(rule: str, nearest: Any = None) -> ConfigError:
        return ConfigError(rule, file=path, address="extends", value=name, nearest=nearest)

    if not isinstance(name, str) or not name:
        raise wrong("must name a shipped space or a space file")
    beside = path.parent / name
    try:
        found = beside if is_file(beside) else find_space(name)
    except ConfigError as error:
        raise wrong(error.rule, error.nearest) from None
    if not exists(found) or found.is_dir():
        raise wrong("no such file; a path starts at the folder of the file that names it")
    later = [other for other in (path, *before) if other.resolve() == found.resolve()]
    if later:
        is_same = later[0] is path
        rule = "a space cannot extend itself" if is_same else "extends a space that extends it"
        raise wrong(rule)
    return found


def _extended(base: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """A whole part of `tree` replaces that of its base, but the models are merged."""
    inherited = {key: value for key, value in base.items() if key not in ("name", "description")}
    model = {"model": merged(base.get("model"), tree["model"])} if "model" in tree else {}
    return {**inherited, **tree, **model}


def merged(base: Any, changes: Any) -> Any:
    """`base` with `changes`: mappings key by key, lists of as many mappings item by item."""
    if _is_part(base) and _is_part(changes):
        return base | {key: merged(base.get(key), value) for key, value in changes.items()}
    if _are_parts(base) and _are_parts(changes) and len(base) == len(changes):
        return [merged(*pair) for pair in zip(base, changes, strict=True)]
    return changes


def _is_part(tree: Any) -> bool:
    """Whether it is a mapping of fields, and no searched value."""
    return isinstance(tree, dict) and not is_axis(tree)


def _are_parts(tree: Any) -> bool:
    return isinstance(tree, list) and all(map(_is_part, tree))
