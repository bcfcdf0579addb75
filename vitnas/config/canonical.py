"""The one spelling of a network: what does not matter is at its default."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from vitnas.config.field_rule import FieldRule
from vitnas.config.matters import NETWORK_RULES, STAGE_RULES
from vitnas.config.network import Network
from vitnas.config.parts import Frozen
from vitnas.config.stage import StageConfig

_Network = TypeVar("_Network", bound=Network)


def canonical(network: _Network) -> _Network:
    """A copy in which every spelling of this network is the same; see `matters`.

    Every stage has its own heads and residual, so the network's residual is unused. A norm that all
    stages share is the network's.
    """
    stages = tuple(_canonical_stage(stage, network) for stage in network.stages)
    copy = network.model_copy(update={"stages": stages})
    for part, name, rule, default in _network_rules():
        holder: Frozen = getattr(copy, part) if part else copy
        old = getattr(holder, name)
        value = rule.meaning(copy, old, copy) if rule.matters(copy) else default
        if value != old:
            changed = holder.model_copy(update={name: value}) if part else value
            copy.__dict__[part or name] = changed  # a copy of our own, not yet handed out
    _share_norm(copy)
    return copy


def _share_norm(network: Network) -> None:
    """Give the network the norm that all stages share; a stage keeps one that differs from it."""
    named = {stage.norm for stage in network.stages} - {None}
    if len(named) == 1 and not network.has_norm_between:
        network.__dict__["norm"] = named.pop()
    for stage in network.stages:
        if stage.norm == network.norm:
            stage.__dict__["norm"] = None


def _canonical_stage(stage: StageConfig, network: Network) -> StageConfig:
    copy = stage.model_copy()
    fields = copy.__dict__
    for name, rule, default in _stage_rules():
        fields[name] = rule.meaning(copy, fields[name], network) if rule.matters(copy) else default
    return copy


@cache
def _network_rules() -> tuple[tuple[str, str, FieldRule[Network], Any], ...]:
    """(part, or an empty text; field; its rule; its default) of each rule."""
    found = []
    for address, rule in NETWORK_RULES.items():
        part, _, name = address.rpartition(".")
        default = Network.model_fields[part or name].default
        found.append((part, name, rule, getattr(default, name) if part else default))
    return tuple(found)


@cache
def _stage_rules() -> tuple[tuple[str, FieldRule[StageConfig], Any], ...]:
    fields = StageConfig.model_fields
    named = ((name, rule) for name, rule in STAGE_RULES.items() if name in fields)
    return tuple((n, rule, fields[n].default) for n, rule in named if not fields[n].exclude)
