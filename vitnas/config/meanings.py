"""Which values of a field mean the same: one value for all of them.

`matters` says of which field each function is; `fits` has those that say which values cannot be.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

from vitnas.config import rules
from vitnas.config.collected import shortest
from vitnas.config.mixers import MIXERS, mixer_named
from vitnas.config.network import Network
from vitnas.config.parts import Residual
from vitnas.config.pattern import MixerPattern, settled, shortest_pattern
from vitnas.config.stage import StageConfig


def falls(network: Network) -> bool:
    """Whether a linear temperature takes more than one value."""
    first, last = network.attention_span
    return first != last


def mixer_paths(stage: StageConfig, mixer: Any, _: Network) -> Any:
    """An announced name of another package's mixer and its path are one mixer.

    Patterns are the same if all blocks have the same mixers.
    """
    if isinstance(mixer, MixerPattern) and mixer.problem(stage.depth) is None:
        return shortest_pattern(tuple(map(_path, mixer.of_blocks(stage.depth))))
    return _path(mixer) if isinstance(mixer, str) else mixer


def turns(stage: StageConfig, pattern: tuple[str, ...], _: Network) -> Any:
    """The mixers of the blocks that follow the pattern."""
    assert isinstance(stage.token_mixer, MixerPattern)
    left = stage.depth - stage.token_mixer.tail
    return tuple(map(_path, islice(cycle(settled(pattern)), left)))


def _path(name: str) -> str:
    return name if name in MIXERS else mixer_named(name).path


def square(network: Network, size: Any, _: Network) -> Any:
    """One number says both sides where they are equal."""
    return size if isinstance(size, int) or len(set(size)) > 1 else size[0]


def named_widths(network: Network, widths: Any, _: Network) -> Any:
    """None says the stem's default widths."""
    default = network.stem.default_widths(network.stages[0].embed_dim)
    return None if widths is None or tuple(widths) == default else widths


def collected_layers(network: Network, layers: str | None, _: Network) -> str | None:
    """The shortest way to say which layers broad attention collects."""
    stages = [stage for stage, _ in network.tapped_layers]
    return shortest(layers, stages, flat=len(network.stages) == 1)


def linear_or_none(network: Network, kind: str, _: Network) -> str:
    """A linear temperature that does not fall is none."""
    return "none" if kind == "linear" and not falls(network) else kind


def schedule(stage: StageConfig, groups: tuple[int, ...], _: Network) -> tuple[int, ...]:
    """The groups of each pass, where these are given."""
    of_passes = rules.schedule_of(groups, stage.passes)
    return (1,) * len(of_passes) if stage.facts.groups == "ignored" else of_passes


def residual(stage: StageConfig, own: Residual | None, network: Network) -> Residual:
    """A stage without its own has the network's; without blocks it has none to speak of."""
    return own or network.residual if stage.has_blocks else "plain"
