"""The network of a graft.yaml: built, with its sizes written out, and at another image size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from timm.layers import resize_rel_pos_bias_table_simple
from timm.models.pvt_v2 import Attention as ReducedAttention
from torch import Tensor, nn

from vitnas.config.graft_file import GraftFile
from vitnas.nn.graft.apply import graft
from vitnas.nn.graft.attention import Site, StaticKeyGraft
from vitnas.nn.graft.families import family_of
from vitnas.nn.graft.networks import build_network, image_size
from vitnas.nn.graft.reattention import ReattentionDropout
from vitnas.nn.graft.reduced import Reduction
from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.weights import state_of


def build_graft(file: GraftFile, pretrained: bool = False, weights: str | None = None) -> nn.Module:
    """The network of a graft.yaml with fresh weights, or with timm's in what is not grafted.

    It says its `image_hw` and `in_chans`, as our networks do.

    Args:
        file: the network, its options and its grafts.
        pretrained, weights: as for `build_network`.

    Raises:
        ConfigError: it cannot be built.
        DataError: timm cannot get the weights.

    Randomness: first weights and static keys, from torch's generator.
    """
    model: Any = build_network(file.model, pretrained, weights=weights, **file.options.given())
    for config in file.grafts:
        graft(model, **config.model_dump())
    model.image_hw, model.in_chans = image_size(model), file.in_chans
    built: nn.Module = model
    return built


def settled(file: GraftFile) -> GraftFile:
    """The same network with image size, channels and classes written out.

    What is not given is the network's own default. So it is built, without memory for weights.

    Raises:
        ConfigError: it cannot be built.
    """
    with torch.device("meta"):
        model: Any = build_graft(file)
    return file.changed(**sizes_of(model), in_chans=file.in_chans)


def sizes_of(model: Any) -> dict[str, Any]:
    """`img_size` and `num_classes` of a built network, as options."""
    height, width = image_size(model)
    size = height if height == width else (height, width)
    return {"img_size": size, "num_classes": model.num_classes}


def resized_state(source: nn.Module, target: nn.Module) -> dict[str, Tensor]:
    """The weights of a grafted network, for the same network at another image size.

    Position tables and static keys are interpolated, and re-attention is scaled, as
    `HybridTransformer.resize` does. All else is as it is; what does not fit `target` then keeps its
    shape.

    Args:
        source: has the weights.
        target: is built for the other size.
    """
    state = state_of(source)
    named = [*source.named_parameters(), *source.named_buffers()]
    names = {id(tensor): name for name, tensor in named if name in state}
    for owner, field, value in (*_of_keys(source, target), *_of_reattention(source, target)):
        if id(getattr(owner, field)) in names:
            state[names[id(getattr(owner, field))]] = value
    for name, old, new in _tables(source, target):
        state[name] = _table(state[name], old, new)
    return state


def _of_keys(source: nn.Module, target: nn.Module) -> Iterator[Change]:
    for name, module in source.named_modules():
        if isinstance(module, StaticKeyGraft):
            other: Any = target.get_submodule(name)
            yield from module.mixer.resized(_layout(module), _layout(other))


def _of_reattention(source: nn.Module, target: nn.Module) -> Iterator[Change]:
    if not any(isinstance(module, ReattentionDropout) for module in source.modules()):
        return  # a network without grafts may be of no family that has sites
    sites = (family_of(model).sites(model) for model in (source, target))
    for before, after in zip(*sites, strict=True):
        drop = getattr(before.attention, "attn_drop", None)
        if isinstance(drop, ReattentionDropout):
            yield from drop.reattention.resized(_keys(before), _keys(after))


def _keys(site: Site) -> TokenLayout:
    """What the rows of a map are over; PVT and LVT have fewer keys than tokens."""
    is_reduced = isinstance(site.attention, ReducedAttention)
    grid = Reduction(site.attention).after(site.grid) if is_reduced else site.grid
    return TokenLayout(grid, site.prefix)


def _layout(attention: StaticKeyGraft) -> TokenLayout:
    height, width = attention.grid
    return TokenLayout(attention.grid, attention.num_tokens - height * width)


def _tables(source: Any, target: Any) -> Iterator[tuple[str, Grid, Grid]]:
    """Tables of positions with the grids that they are for: the network's own, and Swin's."""
    if getattr(source, "pos_embed", None) is not None:
        yield "pos_embed", source.patch_embed.grid_size, target.patch_embed.grid_size
    for name, module in source.named_modules():
        if getattr(module, "relative_position_bias_table", None) is not None:
            old, new = (_window(model.get_submodule(name)) for model in (source, target))
            yield f"{name}.relative_position_bias_table", old, new


def _window(attention: Any) -> Grid:
    window: Grid = (
        attention.grid if isinstance(attention, StaticKeyGraft) else attention.window_size
    )
    return window


def _table(table: Tensor, old: Grid, new: Grid) -> Tensor:
    """A table over positions `(1, N, C)`, or Swin's over differences of positions `(M, h)`."""
    if table.ndim == 3:
        prefix = table.shape[1] - old[0] * old[1]
        return resize_tokens(table, 1, TokenLayout(old, prefix), TokenLayout(new, prefix))
    shape = (2 * new[0] - 1) * (2 * new[1] - 1), table.shape[1]
    resized: Tensor = resize_rel_pos_bias_table_simple(
        table, new_window_size=new, new_bias_shape=shape
    )
    return resized
