"""A search space: a model file with choices in it, and the networks that it suggests.

`axes` has the searched values, `suggest` draws a network; this is the file as a whole. The grammar
is on one page in `space/README.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from vitnas.config.axes import Axis, all_axes
from vitnas.config.costs import MEASURED
from vitnas.config.data import DataConfig
from vitnas.config.data_checks import check_data_fits, check_data_there
from vitnas.config.files import dump_yaml, validate
from vitnas.config.findings import as_config_error
from vitnas.config.model import ModelConfig
from vitnas.config.objectives import Bounds, Limits, Objectives
from vitnas.config.parts import Frozen, as_tuple
from vitnas.config.recipe import check_recipe_fits
from vitnas.config.space_checks import check_inherited, check_schedules, check_values, template_of
from vitnas.config.space_files import LONGEST_NAME, merged, on_other_data, read_space, refuse_folder
from vitnas.config.space_files import find_space as find_space
from vitnas.config.space_files import shipped_spaces as shipped_spaces
from vitnas.config.suggest import suggest_tree
from vitnas.config.training import ProxyConfig
from vitnas.config.trials import RandomTrial, Refused, Trial, every
from vitnas.errors import ConfigError, join_address

_MOST_SIZES = 8


class SpaceConfig(Frozen):
    """A space file. `model` is a model file in which any value may be an axis."""

    name: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=LONGEST_NAME)
    ] = Field(description="also the name of the results folder: letters, digits, `_`, `.` and `-`")
    description: str = Field("", description="a text for readers")
    extends: str | None = Field(
        None,
        exclude=True,
        description="a shipped space, or a file beside this one: its `model` and `proxy` with the "
        "changes given here; other parts replace its own",
    )
    data: DataConfig = Field(
        DataConfig(), description="the images, and which of them score a candidate"
    )
    proxy: ProxyConfig = Field(
        ProxyConfig(), description="the short training that scores a candidate"
    )
    objectives: Objectives = Field(
        Objectives(top1="maximize", flops="minimize"),
        description="what is scored: `top1` or `top1_int8`, and one cost or several, in any order",
    )
    limits: Limits = Field(
        Limits(),
        description="what a candidate must meet: `{min: ..., max: ...}`, both included, on any "
        "cost, an objective or not",
    )
    model: dict[str, Any] = Field(description="a model file in which any value may be searched")
    seed_configs: Annotated[tuple[dict[str, Any], ...], BeforeValidator(as_tuple)] = Field(
        (),
        exclude=True,
        description="networks that a search trains first, such as were good on other images, the "
        "cheapest first: each as changes to `model`, like those of a space that extends this one",
    )

    @property
    def measured(self) -> tuple[str, ...]:
        """The costs that have to be measured: objectives or limits ask for them."""
        asked = {name for name in MEASURED if getattr(self.limits, name) != Bounds()}
        return tuple(name for name in MEASURED if name in asked or name in self.objectives.costs)


class SearchSpace:
    """Networks that a space file describes.

    Args:
        config: the validated file.
        file: where it came from, for error messages.

    Attributes:
        example: a network of the space.

    Raises:
        ConfigError: an axis is malformed, a value has the wrong type, also one of `seed_configs`,
            or no draw is a network.
    """

    def __init__(self, config: SpaceConfig, file: str | Path | None = None) -> None:
        self.config = config
        self.file = file
        try:
            self.template = template_of(config.model)
            check_schedules(self.template)
            for field in ("residual", "norm"):
                check_inherited(self.template, field)
        except ConfigError as error:
            raise error.at(file=file, prefix="model") from None
        self._check_fields()
        try:
            self.image_sizes()
        except ConfigError as error:
            raise error.at(file=file, prefix="model") from None
        self._check_draws()
        self._check_recipe()
        self._check_seeds()

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes in the file's order, those inside options included."""
        return tuple(all_axes(self.template))

    def suggest(self, trial: Trial) -> ModelConfig:
        """Draw a network.

        Args:
            trial: an Optuna trial, or anything with its three `suggest_` methods. All randomness
                is the trial's.

        Raises:
            Refused: the draw breaks a rule; drawing again may not.
        """
        try:
            return ModelConfig.model_validate(suggest_tree(self.template, trial))
        except ValidationError as error:
            found = as_config_error(error, ModelConfig)
            raise Refused(
                found.rule, address=found.address, value=found.value, nearest=found.nearest
            ) from None

    def with_proxy(self, proxy: ProxyConfig) -> SearchSpace:
        """The same space with another short training; it is no longer what its file says."""
        if proxy == self.config.proxy:
            return self
        return SearchSpace(self.config.model_copy(update={"proxy": proxy}))

    def for_epochs(self, epochs: int | None) -> SearchSpace:
        """The same space with short trainings of so many epochs; None: of as many as it says."""
        proxy = self.config.proxy
        return self if epochs is None else self.with_proxy(proxy.for_epochs(epochs))

    def at_rate(self, lr: float | None) -> SearchSpace:
        """The same space with short trainings of another peak learning rate; None: of its own."""
        proxy = self.config.proxy
        return self if lr is None else self.with_proxy(proxy.at_rate(lr))

    def seed_network(self, index: int) -> ModelConfig:
        """One of `seed_configs`; the first draw where it leaves values open.

        Raises:
            ConfigError: no network has these values and those that the model has beside them.
        """
        model = merged(self.config.model, self.config.seed_configs[index])
        alone = self.config.model_copy(update={"model": model, "seed_configs": ()})
        try:
            return SearchSpace(alone).example
        except ConfigError as error:
            field = error.address.removeprefix("model").removeprefix(".")
            address = join_address(f"seed_configs[{index}]", field)
            raise ConfigError(
                error.rule,
                file=self.file,
                address=address,
                value=error.value,
                nearest=error.nearest,
            ) from None

    def networks(self) -> Iterator[ModelConfig]:
        """Every network that can be suggested, in a fixed order; refused answers are skipped.

        Raises:
            ValueError: the space has a continuous axis.
        """
        return every(self.suggest)

    def image_sizes(self) -> tuple[tuple[int, int], ...]:
        """(H, W) of the images that the space's networks read; one, unless `img_size` is searched.

        Raises:
            ConfigError: there are more than `_MOST_SIZES`.
        """
        given = self.template.get("img_size", ModelConfig.model_fields["img_size"].default)
        sizes: dict[tuple[int, int], None] = {}
        for tree in every(lambda trial: suggest_tree({"img_size": given}, trial)):
            size = tree["img_size"]
            sizes[(size, size) if isinstance(size, int) else (size[0], size[1])] = None
            if len(sizes) > _MOST_SIZES:
                rule = f"takes {_MOST_SIZES} values at most: the images are kept at each size"
                raise ConfigError(rule, address="img_size", value=self.config.model["img_size"])
        return tuple(sizes)

    @property
    def text(self) -> str:
        """The file's own text, comments included, where it says all of this space.

        It is written out where another file is needed, too, or the images are others.
        """
        file = None if self.config.extends or self.config.proxy.needs_file else self.file
        if file is not None and Path(file).is_file():
            text = Path(file).read_text(encoding="utf-8")
            with suppress(ConfigError):
                if validate(SpaceConfig, read_space(Path(file))) == self.config:
                    return text
        tree = self.config.model_dump(mode="json", exclude_defaults=True)
        if "proxy" in tree:
            tree["proxy"] = self.config.proxy.written()
        if self.config.seed_configs:
            tree["seed_configs"] = list(self.config.seed_configs)
        return dump_yaml(tree)

    def to_tree(self) -> dict[str, Any]:
        """The whole file with every default written out: equal for equal spaces."""
        return self.config.model_dump(mode="json")

    def _check_fields(self) -> None:
        """Check keys and types of every option alone; rules across fields come with the draws."""
        try:
            check_values(self.template)
        except ConfigError as error:
            raise error.at(file=self.file, prefix="model") from None

    def _check_seeds(self) -> None:
        """Check keys and types of `seed_configs`, whatever the model has beside them: it may have
        changed since, and then `seed_network` says why it has such a network no more."""
        for index, changes in enumerate(self.config.seed_configs):
            try:
                template = template_of(changes)
                check_schedules(template)
                check_values(template, are_all=False)
            except ConfigError as error:
                raise error.at(file=self.file, prefix=f"seed_configs[{index}]") from None

    def _check_draws(self, attempts: int = 300) -> None:
        """Make sure that at least one draw is a network, and that it fits the data."""
        problem: ConfigError | None = None
        for seed in range(attempts):
            try:
                config = ModelConfig.model_validate(suggest_tree(self.template, RandomTrial(seed)))
            except ValidationError as error:
                problem = problem or as_config_error(error, ModelConfig)
            except Refused as error:
                problem = problem or error
            else:
                self.example = config
                return self._check_data(config)
        assert problem is not None
        raise problem.at(file=self.file, prefix="model")

    def _check_recipe(self, draws: int = 30) -> None:
        """Refuse a recipe that asks for what no network of the space seems to have."""
        problem: ConfigError | None = None
        for config in (self.example, *self._draws(draws)):
            try:
                return check_recipe_fits(self.config.proxy, config)
            except ConfigError as error:
                problem = problem or error
        assert problem is not None
        raise problem.at(file=self.file, prefix="proxy")

    def _draws(self, number: int) -> Iterator[ModelConfig]:
        for seed in range(number):
            with suppress(Refused):
                yield self.suggest(RandomTrial(seed))

    def _check_data(self, config: ModelConfig) -> None:
        prefix = "data"
        try:
            check_data_there(self.config.data)
            prefix = "model"
            check_data_fits(self.config.data, config)
        except ConfigError as error:
            raise error.at(file=self.file, prefix=prefix) from None


def load_space(path: str | Path, data: DataConfig | None = None) -> SearchSpace:
    """Read a space file; a bare name such as `digits` means a shipped one.

    Args:
        path: the file or the name.
        data: images in place of the space's own, see `on_other_data`.

    Raises:
        ConfigError: with file, address, value and rule.
    """
    found = find_space(path)
    refuse_folder(found)
    tree = read_space(found)
    config = validate(SpaceConfig, tree if data is None else on_other_data(tree, data), file=found)
    return SearchSpace(config, file=found)
