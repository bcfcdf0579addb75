"""What is wrong in a model with searched values, or in a part of one, before a network is drawn."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from vitnas.config.axes import Axis, Choice, FloatRange, IntRange, all_axes, probes
from vitnas.config.findings import field_error
from vitnas.config.grammar import check_ties, parse_tree
from vitnas.config.model import ModelConfig
from vitnas.config.notation import fit_schedule, parse_schedule
from vitnas.errors import ConfigError, join_address


def template_of(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with an `Axis` in place of every searched value.

    Raises:
        ConfigError: an axis is malformed, two of one name offer different values, or the whole
            tree is one.
    """
    template = parse_tree(tree)
    if isinstance(template, Axis):
        raise ConfigError("must be a mapping; search the values inside it", value=tree)
    check_ties(all_axes(template))
    return template  # type: ignore[no-any-return]


def check_values(template: dict[str, Any], *, are_all: bool = True) -> None:
    """Check keys and types of every option, each alone.

    Args:
        template: a model's tree with its axes.
        are_all: whether it has to have each field that a model needs.

    Raises:
        ConfigError: a key is unknown, or a value cannot be, whatever stands beside it.
    """
    for tree in probes(template):
        tree.pop("groups", None)  # which is checked; where it does not fit, all else is hidden
        try:
            ModelConfig.model_validate(tree)
        except ValidationError as error:
            if found := field_error(error, ModelConfig, are_all=are_all):
                raise found from None


def check_schedules(template: Any) -> None:
    """Every schedule on offer must be readable and have one bracket for each stage."""
    if "groups" not in template:
        return
    offered = template["groups"]
    if isinstance(offered, (IntRange, FloatRange)):
        raise ConfigError("can only be searched by choice", address="groups", nearest="choice")
    options = offered.options if isinstance(offered, Choice) else (offered,)
    stages = template.get("stages")
    for index, option in enumerate(options):
        parts = ("groups", "choice", index) if isinstance(offered, Choice) else ("groups",)
        address = join_address(*parts)
        try:
            brackets = parse_schedule(option) if isinstance(option, str) else None
        except ValueError as error:
            raise ConfigError(str(error), address=address, value=option) from None
        if brackets is None:
            rule = 'must be text like "[8,2][4,1][1,1]"'
            raise ConfigError(rule, address=address, value=option)
        if isinstance(stages, list) and len(brackets) != len(stages):
            rule = f"{len(brackets)} brackets for {len(stages)} stages"
            nearest = fit_schedule(brackets, len(stages))
            raise ConfigError(rule, address=address, value=option, nearest=nearest)


def check_inherited(template: Any, field: str) -> None:
    """Refuse a stage's choice of null and a value that the network's own field offers, too.

    Null means the network's value, so two answers would be the same network.
    """
    shared = template.get(field)
    if not isinstance(shared, Choice) or len(shared.options) == 1:
        return
    for axis in all_axes(template):
        if not isinstance(axis, Choice) or axis.stage is None or axis.field != field:
            continue
        twice = [option for option in axis.options if option in shared.options]
        if None in axis.options and twice:
            named = [str(option) for option in axis.options if option is not None]
            raise ConfigError(
                f"null means the network's `{field}`, which may be {twice[0]}, too: leave out one",
                address=join_address(*axis.path, "choice"),
                value=list(axis.options),
                nearest=f"[{', '.join(named)}]",
            )
