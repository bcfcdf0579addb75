"""How a candidate is trained, without torch: the `proxy` part of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from vitnas.config.files import exists
from vitnas.config.findings import RuleError
from vitnas.config.recipe import Recipe, load_recipe
from vitnas.errors import ConfigError

_SCHEDULE = ("warmup_epochs", "cooldown_epochs")
"""What is shortened together with `epochs`, as `no_augment_epochs` is, to whole ones."""
_OF_EVERY_RECIPE = (
    *("epochs", "batch_size", "optimizer", "lr", "weight_decay", "warmup_epochs"),
    *("label_smoothing", "grad_clip", "augment", "train_fraction", "eval_batch_size"),
)


class ProxyConfig(Recipe):
    """The short training that scores a candidate: a recipe of few epochs, or one shortened.

    The defaults suit `digits`; larger images want larger batches (see the files in `space/`).
    `recipe` is resolved where a file is read (`with_recipe`). Afterwards it only says where the
    values are from.
    """

    epochs: Annotated[int, Field(ge=1, le=10_000)] = Field(
        10, description="passes over the training images"
    )
    crop_scale: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.35,
        description="of `crop_flip`: the smallest share of the image's area that a crop keeps; "
        "a `recipe` has 0.08, as timm",
    )
    recipe: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="a recipe of `vitnas train`, or a file beside this one: its fields with the "
        "changes given here; with another number of `epochs`, its warm-up and cool-down change in "
        "proportion",
    )

    @model_validator(mode="after")
    def _recipe_is_resolved(self) -> ProxyConfig:
        if self.recipe is not None and not self.model_fields_set.issuperset(_OF_EVERY_RECIPE):
            raise RuleError(
                "is looked up where a file is read; see `with_recipe`", "recipe", self.recipe
            )
        return self

    def for_epochs(self, epochs: int) -> ProxyConfig:
        """The same training with another number of epochs; of a recipe, the schedule keeps its
        shape."""
        return self.model_copy(update={"epochs": epochs, **_schedule(self, epochs)})

    def at_rate(self, lr: float) -> ProxyConfig:
        """The same training with another peak rate; the lowest one changes in proportion.

        Args:
            lr: above 0, at most 1.
        """
        return self.model_copy(update={"lr": lr, "min_lr": self.min_lr * (lr / self.lr)})

    def told(self) -> dict[str, Any]:
        """The fields as plain values; of those that few recipes have, only what is not off."""
        off = ProxyConfig().model_dump(mode="json")
        fields = self.model_dump(mode="json")
        return {k: v for k, v in fields.items() if k in _OF_EVERY_RECIPE or v != off[k]}

    @property
    def needs_file(self) -> bool:
        """Whether `recipe` is a file, and none of the recipes that ship."""
        return self.recipe is not None and _is_file(self.recipe)

    def written(self) -> dict[str, Any]:
        """What a file that stands alone has to say for the same training."""
        if self.recipe is None:
            return self.model_dump(mode="json", exclude_defaults=True)
        return self.model_dump(mode="json", exclude={"recipe"} if self.needs_file else set())


def _schedule(recipe: Recipe, epochs: int) -> dict[str, float]:
    """Warm-up, cool-down and the end of augmentation of a recipe that is trained for `epochs`."""
    if isinstance(recipe, ProxyConfig) and recipe.recipe is None:
        return {}
    part = epochs / recipe.epochs
    schedule = {name: getattr(recipe, name) * part for name in _SCHEDULE}
    return {**schedule, "no_augment_epochs": round(recipe.no_augment_epochs * part)}


def with_recipe(proxy: Any, file: Path) -> Any:
    """The `proxy` of a space file, with all fields of the recipe that it names.

    Its own fields come first, also those inside `distill` and `similarity_penalty`.

    Args:
        proxy: as read; what names no recipe is returned as it is.
        file: the space file; a recipe file is looked for beside it first.

    Raises:
        ConfigError: no such recipe, or its file has a mistake.
    """
    if not isinstance(proxy, Mapping) or not isinstance(proxy.get("recipe"), str):
        return proxy
    recipe = _load(proxy["recipe"], file)
    epochs = proxy.get("epochs", recipe.epochs)
    is_number = isinstance(epochs, int) and not isinstance(epochs, bool)
    fields = recipe.model_dump() | (_schedule(recipe, epochs) if is_number else {})
    return with_fields(fields, proxy)


def with_fields(proxy: Any, own: Mapping[str, Any]) -> Any:
    """The fields of a `proxy`, but where `own` has them; also inside `distill` and the like."""
    if not isinstance(proxy, Mapping):
        return proxy
    inner = {
        name: proxy[name] | value
        for name, value in own.items()
        if isinstance(value, Mapping) and isinstance(proxy.get(name), Mapping)
    }
    return {**proxy, **own, **inner}


def _load(name: str, file: Path) -> Recipe:
    beside = file.parent / name
    try:
        return load_recipe(beside if _is_file(name) and exists(beside) else name)
    except ConfigError as error:
        if error.file is not None:
            raise
        raise error.at(file=file, prefix="proxy") from None


def _is_file(name: str) -> bool:
    """Whether `recipe` names a file and none of the shipped recipes."""
    return Path(name).suffix in (".yaml", ".yml") or Path(name).name != name
