"""What a long training needs: network, images, recipe. All are checked before torch is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitnas.config.baseline import Baseline
from vitnas.config.data import DataConfig
from vitnas.config.data_checks import check_data_fits, check_data_there
from vitnas.config.data_names import read_data
from vitnas.config.design import Design
from vitnas.config.files import exists, validate
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig, load_config
from vitnas.config.notation import human
from vitnas.config.recipe import DEFAULT_RECIPE, Recipe, check_recipe_fits, load_recipe
from vitnas.data.telling import scoring_text
from vitnas.errors import ConfigError
from vitnas.exported.design import (
    file_of,
    line_of,
    read_design,
    settled_design,
    size_of_design,
)
from vitnas.nn.zoo import zoo_config
from vitnas.training.start import FromTimm, digest, start_of
from vitnas.words import plural


@dataclass(frozen=True)
class Plan:
    """A long training, before it starts.

    Attributes:
        config: the network, at the size that it is trained at and with the recipe's drop-path.
        data: the images.
        recipe: how it is trained.
        recipe_name: the recipe as it was asked for.
        seed: of first weights, order, augmentation and dropout.
        init_from: an exported folder whose weights come first, or timm's; None = fresh weights.
        fingerprint: that the training images must have; None = any images will do.
        before: classes that the network's folder is for, where it gets others.
        origin: run, trial and space that the network is from, for readers; empty = of none.
    """

    config: Design
    data: DataConfig
    recipe: Recipe
    recipe_name: str = DEFAULT_RECIPE
    seed: int = 0
    init_from: Path | FromTimm | None = None
    fingerprint: Mapping[str, Any] | None = None
    before: int | None = None
    origin: str = ""

    def line(self, trained: int, scoring: int) -> str:
        """What is about to be trained and on how many images, in one line.

        Args:
            trained: images that train.
            scoring: images that score.
        """
        (height, width), cost = self.config.image_hw, size_of_design(self.config)
        size = f"{human(cost.num_params)} parameters, {human(cost.flops)} FLOPs"
        what = f"{self.config.name} on {self.data.name} at {height}x{width} px"
        scored = scoring_text(scoring, self.data.val_split)
        on = f"trains on {trained:,} images, is scored on {scored}"
        epochs = plural(self.recipe.epochs, "epoch")
        line = f"{what}: {size}, {epochs} of {self.recipe_name}; {on}"
        if self.before is None:
            return line
        return (
            f"{line}; a classifier of {self.config.num_classes:,} classes replaces its "
            f"{self.before:,}"
        )

    def identity(self) -> dict[str, Any]:
        """What must be the same for a training to resume from a checkpoint; plain values."""
        return {
            "network": line_of(self.config),
            "img_size": list(self.config.image_hw),
            "key": self.config.key,
            "recipe": self.recipe.model_dump(mode="json"),
            "data": self.data.model_dump(mode="json"),
            "seed": self.seed,
            "init_from": None if self.init_from is None else digest(self.init_from),
        }


def make_plan(
    model: str | Path | Design,
    data: str | DataConfig = "digits",
    recipe: str | Path | Recipe = DEFAULT_RECIPE,
    *,
    epochs: int | None = None,
    img_size: int | None = None,
    teacher: str | None = None,
    score_on: str | None = None,
    seed: int = 0,
    init_from: str | Path | None = None,
) -> Plan:
    """Read and check everything that can be checked without torch; timm is asked for a graft's.

    Args:
        model: a network; a model of the zoo, which then gets the classes and channels of the data;
            a model file; or an exported folder, whose network is used with the classes of the data
            (a graft's also with its channels), but not its weights.
            A baseline is for the images of its run, and drop-path is not for it; a network of
            timm that is given is for these images, too.
        data: see `read_data`.
        recipe: a recipe, the name of a shipped one, or a file.
        epochs, img_size, teacher: instead of what recipe and model file say.
        score_on: `val` or `test`: the data's own images score, and all training images train; None
            = what `data` says, by which a share of the training images is held out.
        seed: of first weights, order, augmentation and dropout.
        init_from: an exported folder with the first weights, of the same network at any size and
            with any classes; or `timm:NAME`, timm's own weights, or `timm:NAME:FILE`, in a file.

    Raises:
        ConfigError, DataError: one line with what is wrong and what would be right.
    """
    images = data if isinstance(data, DataConfig) else read_data(data, trains=True)
    if score_on is not None:
        images = _scored_on(images, score_on)
    try:
        check_data_there(images)
    except ConfigError as error:
        raise error.at(prefix="data") from None
    name = "given" if isinstance(recipe, Recipe) else str(recipe)
    found = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    changes: dict[str, Any] = {} if epochs is None else {"epochs": epochs}
    if teacher is not None:
        changes["distill"] = {**found.distill.model_dump(), "teacher": teacher}
    if changes:
        found = validate(Recipe, {**found.model_dump(), **changes})
    config, before = _network(model, images, img_size, found.drop_path_rate)
    try:
        check_recipe_fits(found, config)
    except ConfigError as error:
        raise error.at(prefix="recipe") from None
    try:
        check_data_fits(images, config)
    except ConfigError as error:
        if not isinstance(model, str | Path) or not Path(model).is_dir():
            raise
        raise error.at(file=Path(model, file_of(config))) from None
    start = None if init_from is None else start_of(str(init_from))
    return Plan(config, images, found, name, seed, start, before=before)


def _scored_on(data: DataConfig, split: str) -> DataConfig:
    changes = {"val_split": split, "val_fraction": 0.0, "folds": 1}
    return validate(DataConfig, {**data.model_dump(), **changes})


def _network(
    model: str | Path | Design,
    data: DataConfig,
    img_size: int | None,
    drop_path: float | None,
) -> tuple[Design, int | None]:
    """The network, and the classes of its folder where it gets others."""
    if isinstance(model, Baseline):
        return model, None
    changes: dict[str, Any] = {} if img_size is None else {"img_size": img_size}
    if drop_path is not None:
        changes["drop_path_rate"] = drop_path
    if isinstance(model, GraftFile):
        return settled_design(model.changed(**changes)), None
    if isinstance(model, ModelConfig):
        return validate(ModelConfig, {**model.model_dump(), **changes}), None
    text, path = str(model), Path(model)
    if not text:  # as a path, it is the current folder
        rule = "is empty: a model of the zoo, a model file or a folder is wanted"
        raise ConfigError(rule, address="MODEL")
    if exists(path) and path.is_dir():
        return _of_folder(path, data, changes)
    if exists(path) or path.suffix in (".yaml", ".yml") or path.name != text:
        config = load_config(path)
        return validate(ModelConfig, {**config.model_dump(), **changes}, file=path), None
    return zoo_config(text, **_sizes(data), **changes), None


def _of_folder(
    folder: Path, data: DataConfig, changes: dict[str, Any]
) -> tuple[Design, int | None]:
    design, sizes = read_design(folder), _sizes(data)
    path, before = folder / file_of(design), design.num_classes
    changed: Design
    if isinstance(design, Baseline):
        size = changes.get("img_size")
        image_hw = design.image_hw if size is None else (size, size)
        tree = {**design.model_dump(), **sizes, "image_hw": image_hw}
        changed = validate(Baseline, tree, file=path)
    elif isinstance(design, ModelConfig):
        sizes.pop("in_chans", None)
        changed = validate(ModelConfig, {**design.model_dump(), **changes, **sizes}, file=path)
    else:
        try:
            before = settled_design(design).num_classes
            changed = settled_design(design.changed(**changes, **sizes))
        except ConfigError as error:
            raise error.at(file=path) from None
    return changed, None if changed.num_classes == before else before


def _sizes(data: DataConfig) -> dict[str, int]:
    """Classes and channels of the images, as far as they are known without reading them."""
    if data.is_ours:
        classes, channels = data.count_classes(), data.facts.in_chans
    else:
        from vitnas.data.foreign import describe

        classes, channels = describe(data)
        classes = data.count_classes() or classes
    facts = {"num_classes": classes, "in_chans": channels}
    return {name: value for name, value in facts.items() if value is not None}
