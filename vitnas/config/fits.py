"""What fits a network, as far as it is known: why a value cannot be in its place."""

from __future__ import annotations

from typing import Any

from vitnas.config import rules
from vitnas.config.mixers import mixer_name, names_with
from vitnas.config.network import Network
from vitnas.config.stage import StageConfig


def broad_problem(network: Network) -> str | None:
    """Why broad attention is impossible over these stages, or None."""
    sources = [stage for stage in network.stages if stage.facts.taps]
    if not sources:
        names = " and ".join(names_with("taps"))
        return f"broad attention collects from {names}, and no stage has either"
    heads, width = sources[-1].heads, network.stages[-1].embed_dim
    if heads and width % heads:
        return (
            f"the {heads} heads of the last {sources[-1].token_mixer} stage do not divide "
            f"the last width {width}"
        )
    return None


def reattention_limit(network: Network) -> int:
    """How many of the last blocks with maps to mix can take re-attention."""
    return rules.reattention_limit([(s.token_mixer, s.depth, s.groups) for s in network.stages])


def schedule_misfit(stage: StageConfig, groups: tuple[int, ...], network: Network) -> str | None:
    """A number in `groups` does not divide the tokens, or does not suit the mixer."""
    schedule = rules.schedule_of(groups, stage.passes)
    return rules.groups_fit(stage.token_mixer, network.tokens_of(stage), schedule)


def passes_misfit(stage: StageConfig, passes: int, network: Network) -> str | None:
    """A mixer that is passed once has no second pass."""
    return rules.groups_fit(stage.token_mixer, 1, (1,) * passes)


def mixer_misfit(stage: StageConfig, mixer: Any, network: Network) -> str | None:
    """A class token has no place in a grid, and an unknown mixer is refused elsewhere."""
    name = mixer_name(mixer)
    return rules.class_token_fits(name) if name and network.class_token else None


def heads_misfit(field: str, stage: StageConfig, value: int | None, _: Network) -> str | None:
    """The value of `field` does not divide the width, or not together with the other one."""
    known = {name: stage.__dict__.get(name) for name in ("num_heads", "head_dim")}
    problem = value and rules.heads_problem(stage.embed_dim, **{**known, field: value})
    if not problem:
        return None
    rule, where, wrong, _nearest = problem
    return f"{where} = {wrong}: {rule}"


def too_many_blocks(network: Network, count: int, _: Network) -> str | None:
    """There are fewer blocks that can have re-attention."""
    limit = reattention_limit(network)
    return None if count <= limit else f"at most {limit} blocks can have re-attention"
