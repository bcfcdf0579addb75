"""The layers of a network with features and attention maps: one for each pass of each block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

from torch import nn

from vitnas.config import mixers
from vitnas.errors import VitnasError
from vitnas.nn.broad import BroadAttention
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.mhsa import SharedMapAttention
from vitnas.nn.recursion import RecursiveBlock


@dataclass(frozen=True)
class LayerPlace:
    """One pass through one block, and the modules whose outputs are read.

    Attributes:
        stage, block: stages are numbered from 1; blocks are numbered from 1 in each stage. Broad
            attention is block 0.
        passed: number of the pass, from 1; 0 in a block with a single pass.
        mixer: the token mixer's name in a model file, or the name of a timm class.
        output: the module whose output is the features.
        owner: the block itself.
        attention: the module that computes the map, or None.
        tap: the module whose output is the map: `attn_drop`, or `reattention` after it.
        absent: why there is no map; empty if there is one.
        runs: how often the attention runs in a pass; its last map is read.
    """

    stage: int
    block: int
    passed: int
    mixer: str
    output: nn.Module
    owner: nn.Module
    attention: nn.Module | None = None
    tap: nn.Module | None = None
    absent: str = ""
    runs: int = 1


@dataclass(frozen=True)
class Layer:
    """A layer of a network with its sizes.

    Attributes:
        index: position in the network, from 0.
        name, label: the name in texts (`stage 2, block 1, pass 2`) and at axes (`2.1p2`).
        stage, mixer: as in `LayerPlace`.
        tokens: number of tokens N with prefix tokens.
        dim: channels C.
        prefix: number of prefix tokens, such as a class token. They come first.
        grid: (H, W) of the other tokens; None if they form no grid.
        heads: heads h of the map; 0 without a map.
        absent: why there is no map; empty if there is one.
        last: whether it is the last block of its stage.
    """

    index: int
    name: str
    label: str
    stage: int
    mixer: str
    tokens: int
    dim: int
    prefix: int
    grid: Grid | None
    heads: int
    absent: str
    last: bool

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        grid = None if self.grid is None else list(self.grid)
        facts = {"name": self.name, "label": self.label, "stage": self.stage}
        facts |= {"mixer": self.mixer, "tokens": self.tokens, "dim": self.dim, "grid": grid}
        facts |= {"prefix_tokens": self.prefix, "heads": self.heads or None}
        return facts | {"map": not self.absent, "why_no_map": self.absent or None}


def find_places(network: nn.Module) -> list[LayerPlace]:
    """The passes of all blocks in the order of execution. Broad attention is last.

    A block is an element of a list named `blocks`, as in our networks and timm's. Each such list
    is a stage.

    Raises:
        VitnasError: there is no such list.
    """
    places: list[LayerPlace] = []
    for stage, blocks in enumerate(lists_of_blocks(network), 1):
        found = [place for n, block in enumerate(blocks, 1) for place in _passes(stage, n, block)]
        if any(getattr(block, "is_external", False) for block in blocks):
            found.sort(key=lambda place: place.passed)
        places += found
    if not places:
        name = type(network).__name__
        raise VitnasError(f"{name}: has no list named 'blocks', so its blocks cannot be found")
    broad = getattr(network, "broad", None)
    if isinstance(broad, BroadAttention):
        why = "its map is over queries and keys of all layers"
        places.append(LayerPlace(places[-1].stage, 0, 0, "broad", broad, broad, absent=why))
    return places


def name_of(place: LayerPlace, *, stages: int) -> tuple[str, str]:
    """Name and axis label. In a network of one stage they do not name the stage."""
    if not place.block:
        return "broad attention", "broad"
    name = f"block {place.block}" if stages == 1 else f"stage {place.stage}, block {place.block}"
    label = f"{place.block}" if stages == 1 else f"{place.stage}.{place.block}"
    if place.passed:
        return f"{name}, pass {place.passed}", f"{label}p{place.passed}"
    return name, label


def grid_of(tokens: int, image_hw: Grid) -> Grid | None:
    """The (H, W) of `tokens` tokens that has the image's aspect ratio; None if there is none."""
    height = round(sqrt(tokens * image_hw[0] / image_hw[1]))
    if height < 1 or tokens % height:
        return None
    grid = (height, tokens // height)
    same_shape = abs(grid[0] * image_hw[1] - grid[1] * image_hw[0]) < max(image_hw)
    return grid if same_shape else None


def lists_of_blocks(network: nn.Module) -> Iterator[Iterable[nn.Module]]:
    """Every list named `blocks` that has no other such list inside."""
    for name, module in network.named_modules():
        if name.rpartition(".")[2] == "blocks" and isinstance(
            module, (nn.ModuleList, nn.Sequential)
        ):
            inner = (below.rpartition(".")[2] for below, _ in module.named_modules() if below)
            if "blocks" not in inner:
                yield module


def _passes(stage: int, number: int, block: nn.Module) -> Iterator[LayerPlace]:
    if isinstance(block, RecursiveBlock):
        for passed, nll in enumerate(block.nlls, 1):
            yield _place(stage, number, passed, nll, block.block)
    else:
        yield _place(stage, number, 0, block, block)


def _place(stage: int, number: int, passed: int, output: nn.Module, block: nn.Module) -> LayerPlace:
    found = [m for m in block.modules() if isinstance(getattr(m, "attn_drop", None), nn.Module)]
    if len(found) != 1:
        mixer = mixer_name(getattr(block, "mixer", None) or getattr(block, "attn", None) or block)
        why = "has several attentions" if found else "has no attention map"
        return LayerPlace(stage, number, passed, mixer, output, block, absent=f"{mixer} {why}")
    mixing = getattr(found[0], "reattention", None)
    tap: Any = mixing if isinstance(mixing, nn.Module) else found[0].attn_drop
    runs = int(getattr(block, "attention_runs", 1))
    name = mixer_name(found[0])
    return LayerPlace(stage, number, passed, name, output, block, found[0], tap, runs=runs)


def mixer_name(module: nn.Module) -> str:
    """The mixer's name in a model file, or the name of a timm class."""
    if isinstance(module, SharedMapAttention):
        return "mhsa with an earlier block's map"
    name = mixers.name_of(type(module))
    dropout = getattr(module, "attn_drop", None)  # a graft's re-attention is inside it
    mixed = any(isinstance(getattr(m, "reattention", None), nn.Module) for m in (module, dropout))
    return f"{name} with re-attention" if mixed else name
