"""What a diagnosis suggests as the start of a search: how many blocks have re-attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from vitnas.config.fits import reattention_limit
from vitnas.config.model import ModelConfig
from vitnas.diagnose.observer import Finding
from vitnas.diagnose.survey import Survey
from vitnas.errors import ConfigError

SUGGESTION_FILE = "reattention.yaml"


@dataclass(frozen=True)
class Suggestion:
    """A number of blocks with re-attention by DeepViT's rule.

    Attributes:
        similar: blocks that are similar to a neighbour.
        blocks: those of them that the network can give re-attention: k.
        config: the network with re-attention in its last k blocks; None if it is not vitnas's.
    """

    similar: int
    blocks: int
    config: ModelConfig | None

    def text(self, model: str, folder: object) -> str:
        """One line: the rule's k, and the command that starts with it."""
        line = f"suggested by DeepViT's Fig. 9: {self.similar} similar blocks"
        if self.blocks < self.similar:
            line += f", {self.blocks} of which can have re-attention"
        if not self.blocks:
            return line
        if self.config is None:
            return f"{line}: vitnas graft {model} --reattention {self.blocks}"
        return f"{line}: vitnas search SPACE --seed-configs {folder}/{SUGGESTION_FILE}"


def check_suggestion(wanted: str | None, network: nn.Module) -> None:
    """Raise `ConfigError` if nothing of the name `wanted` can be suggested for the network."""
    if wanted is None:
        return
    if wanted != "reattention":
        rule = "must be reattention"
        raise ConfigError(rule, address="--suggest", value=wanted, nearest="reattention")
    config = getattr(network, "config", None)
    if isinstance(config, ModelConfig) and config.reattention_blocks:
        rule = (
            f"the rule counts similar blocks without re-attention, and {config.reattention_blocks} "
            "blocks of this network have it"
        )
        raise ConfigError(rule, address="--suggest", value=wanted)


def suggest_reattention(found: Survey, similarity: Finding) -> Suggestion:
    """As many blocks with re-attention as blocks have maps like a neighbour's.

    Source: DeepViT, Fig. 9: the best number of blocks with re-attention is that of similar blocks.
    A block of several passes is similar if all its passes are. Only blocks whose maps re-attention
    can mix are counted as k.

    Args:
        found: the layers of the network.
        similarity: what `CrossLayerSimilarity` found.
    """
    similar = _similar_layers(similarity.numbers["stages"])
    of_block: dict[tuple[int, int], list[bool]] = {}
    for place, layer in zip(found.places, found.layers, strict=True):
        if not layer.absent:
            flags = of_block.setdefault((place.stage, place.block), [])
            flags.append(similar.get(layer.name, False))
    alike = [block for block, flags in of_block.items() if all(flags)]
    config = getattr(found.network, "config", None)
    if not isinstance(config, ModelConfig):
        return Suggestion(len(alike), len(alike), None)
    mixing = [config.stages[s - 1].having("reattention")[b - 1] for s, b in alike]
    blocks = min(sum(mixing), reattention_limit(config))
    tree: dict[str, Any] = {**config.to_tree(), "reattention_blocks": blocks}
    return Suggestion(len(alike), blocks, ModelConfig.model_validate(tree))


def _similar_layers(stages: list[dict[str, Any]]) -> dict[str, bool]:
    return {
        name: bool(is_similar)
        for stage in stages
        for name, is_similar in zip(stage["layers"], stage["similar"], strict=True)
    }
