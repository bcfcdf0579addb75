"""A trained network for images of another size: everything bound to positions is interpolated.

Positions are points of the picture, whatever the grid: a table, a static key or a weight over
positions is a picture of its own and is resized as one. What is summed over positions without a
softmax is divided by how many there are now. Everything is computed before anything is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import VitnasError
from vitnas.nn.layers.reattention import Reattention
from vitnas.nn.layers.shuffle import TokenShuffle
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers import TokenMixer
from vitnas.nn.mixers.cska import ConvStaticKeyAttention
from vitnas.nn.mixers.dwconv import SeparableConv
from vitnas.nn.mixers.identity import Identity
from vitnas.nn.mixers.mhsa import MultiHeadSelfAttention, SharedMapAttention
from vitnas.nn.mixers.mlp import TokenMlp
from vitnas.nn.mixers.pool import Pool
from vitnas.nn.mixers.ska import StaticKeyAttention
from vitnas.nn.stage import Stage


class Layout(NamedTuple):
    """Tokens of a stage: `prefix` class tokens, then a grid (H, W)."""

    grid: Grid
    prefix: int

    @property
    def tokens(self) -> int:
        return self.prefix + self.grid[0] * self.grid[1]


class Change(NamedTuple):
    """`owner.name` is to become `value`; a tensor becomes a parameter or buffer, as it was one."""

    owner: nn.Module
    name: str
    value: Any


def config_at(config: ModelConfig, img_size: Any) -> ModelConfig:
    """The same network for images of another size.

    Raises:
        ConfigError: no network has this size, with the nearest that works: the stages cannot halve
            it, or group numbers do not divide the tokens.
    """
    if isinstance(img_size, (tuple, list)) and len(img_size) == 2 and img_size[0] == img_size[1]:
        img_size = img_size[0]
    return validate(ModelConfig, {**config.to_tree(), "img_size": img_size})


def layout_of(config: ModelConfig, stage: int) -> Layout:
    """The tokens of a stage."""
    return Layout(config.grids[stage], config.num_prefix_tokens)


def plan_resize(stages: Iterable[Stage], old: ModelConfig, new: ModelConfig) -> list[Change]:
    """What has to change in `stages` for images of `new`'s size.

    Raises:
        VitnasError: a mixer that nobody has said how to resize.
    """
    changes: list[Change] = []
    for index, stage in enumerate(stages):
        before, after = layout_of(old, index), layout_of(new, index)
        changes.append(Change(stage, "grid", after.grid))
        for module in stage.modules():
            if type(module) in RESIZERS:
                changes += RESIZERS[type(module)](module, before, after)
            elif isinstance(module, TokenMixer) and type(module) not in UNBOUND:
                raise VitnasError(f"{type(module).__name__} cannot be resized")
    return changes


def apply_changes(changes: Iterable[Change]) -> None:
    """Carry them out. Parameters that keep their shape stay the same objects."""
    for owner, name, value in changes:
        before = getattr(owner, name)
        if not isinstance(before, nn.Parameter):
            setattr(owner, name, value)
        elif before.shape == value.shape:
            with torch.no_grad():
                before.copy_(value)
        else:
            setattr(owner, name, nn.Parameter(value, requires_grad=before.requires_grad))


@torch.no_grad()
def resize_tokens(table: Tensor, axis: int, old: Layout, new: Layout) -> Tensor:
    """A tensor with the tokens of `old` along `axis`, for those of `new`: bicubic, antialiased.

    Entries of class tokens are kept. This is timm's `resample_abs_pos_embed` for any axis.
    """
    if old == new:
        return table.detach().clone()
    rows = table.detach().movedim(axis, -1)
    prefix, patches = rows[..., : old.prefix], rows[..., old.prefix :]
    picture = patches.reshape(1, -1, *old.grid).float()
    picture = F.interpolate(picture, new.grid, mode="bicubic", antialias=True)
    fitted = picture.reshape(*rows.shape[:-1], -1).to(table.dtype)
    return torch.cat([prefix, fitted], dim=-1).movedim(-1, axis).contiguous()


def _static_key(module: StaticKeyAttention, old: Layout, new: Layout) -> list[Change]:
    """The key (h, N, d) over its tokens; softmax takes care of their number."""
    return [Change(module, "static_key", resize_tokens(module.static_key, 1, old, new))]


def _conv_static_key(module: ConvStaticKeyAttention, old: Layout, new: Layout) -> list[Change]:
    """Output channels are (head, key token): the convolution's weight and bias over the tokens."""
    conv, heads = module.key, module.num_heads
    changes = [Change(module, "num_tokens", new.tokens)]
    changes.append(Change(conv, "out_channels", heads * new.tokens))
    for name in ("weight", "bias"):
        by_head = torch.unflatten(getattr(conv, name), 0, (heads, old.tokens))
        changes.append(Change(conv, name, resize_tokens(by_head, 1, old, new).flatten(0, 1)))
    if module.class_key is not None:
        changes.append(Change(module, "class_key", resize_tokens(module.class_key, 1, old, new)))
    return changes


def _token_mlp(module: TokenMlp, old: Layout, new: Layout) -> list[Change]:
    """The first layer sums over tokens, the second gives one row to each."""
    first, second = module.fc1, module.fc2
    weight = resize_tokens(first.weight, 1, old, new)
    weight[:, new.prefix :] *= (old.tokens - old.prefix) / (new.tokens - new.prefix)
    return [
        Change(first, "weight", weight),
        Change(first, "in_features", new.tokens),
        Change(second, "weight", resize_tokens(second.weight, 0, old, new)),
        Change(second, "bias", resize_tokens(second.bias, 0, old, new)),
        Change(second, "out_features", new.tokens),
    ]


@torch.no_grad()
def _reattention(module: Reattention, old: Layout, new: Layout) -> list[Change]:
    """Rows of a map sum to 1, so its entries are smaller by r = N / N', and so is their deviation.

    The mixed map has to become smaller by r as well, for A' V to stay as large as it is.
    """
    ratio, changes = old.tokens / new.tokens, []
    if module.theta.bias is not None:
        changes.append(Change(module.theta, "bias", ratio * module.theta.bias))
    norm = module.norm
    if isinstance(norm, nn.BatchNorm2d):
        mean, variance = norm.running_mean, norm.running_var
        assert mean is not None
        assert variance is not None
        after = ratio**2 * variance
        weight = norm.weight * ((after + norm.eps) / (variance + norm.eps)).sqrt()
        changes += [Change(norm, "running_mean", ratio * mean), Change(norm, "running_var", after)]
        changes += [Change(norm, "weight", weight), Change(norm, "bias", ratio * norm.bias)]
    elif isinstance(norm, nn.LayerNorm):
        changes += [Change(norm, "weight", ratio * norm.weight)]
        changes += [Change(norm, "bias", ratio * norm.bias)]
    return changes


def _shuffle(module: TokenShuffle, old: Layout, new: Layout) -> list[Change]:
    """The permutation that a network built for this size has."""
    order = module.fixed_order(new.tokens).to(module.order.device)
    return [
        Change(module, "num_tokens", new.tokens),
        Change(module, "order", order),
        Change(module, "inverse", torch.argsort(order)),
    ]


RESIZERS: dict[type[nn.Module], Callable[..., list[Change]]] = {
    StaticKeyAttention: _static_key,
    ConvStaticKeyAttention: _conv_static_key,
    TokenMlp: _token_mlp,
    Reattention: _reattention,
    TokenShuffle: _shuffle,
}
"""What is bound to positions or to their number, with how it is resized."""

UNBOUND: frozenset[type[TokenMixer]] = frozenset(
    {MultiHeadSelfAttention, SharedMapAttention, SeparableConv, Pool, Identity}
)
"""Mixers without anything of that kind of their own."""
