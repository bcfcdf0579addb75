"""Reads maps and features of a running network by forward hooks, and removes the hooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vitnas.diagnose.layers import LayerPlace
from vitnas.errors import VitnasError
from vitnas.nn.graft.swin import Places
from vitnas.nn.layers.tokens import to_windows
from vitnas.nn.mixers.mhsa import MultiHeadSelfAttention
from vitnas.nn.mixers.ska import StaticKeyMixer
from vitnas.nn.modes import evaluating

Seen = Callable[[int, Tensor], None]
"""A function of a place's index and the map or features there."""


@contextmanager
def unfused(network: nn.Module) -> Iterator[None]:
    """A context with `fused_attn` off, in our modules and timm's, so that attention builds maps."""
    switches = [m for m in network.modules() if isinstance(getattr(m, "fused_attn", None), bool)]
    before = [module.fused_attn for module in switches]
    try:
        for module in switches:
            module.fused_attn = False  # type: ignore[assignment]
        yield
    finally:
        for module, value in zip(switches, before, strict=True):
            module.fused_attn = value


@contextmanager
def watching(
    network: nn.Module,
    places: Sequence[LayerPlace],
    see_map: Seen | None = None,
    see_features: Seen | None = None,
) -> Iterator[None]:
    """A context in which the two functions receive maps and features of `network` in eval mode.

    Maps are `(B, h, N, N)` with tokens in true order, and zero between the groups or windows of an
    attention. Features are `(B, N, C)`.
    """
    with ExitStack() as stack:
        stack.enter_context(evaluating(network))
        if see_map is not None:
            stack.enter_context(unfused(network))
            for tap, indices in _taps(places):
                hook = _map_hook(places, indices, see_map)
                stack.callback(tap.register_forward_hook(hook).remove)
        if see_features is not None:
            fmt = str(getattr(network, "output_fmt", "NCHW"))
            for index, place in enumerate(places):
                feature_hook = _feature_hook(index, see_features, fmt)
                stack.callback(place.output.register_forward_hook(feature_hook).remove)
        yield


def as_tokens(output: Any, fmt: str = "NCHW") -> Tensor:
    """A block's output as `(B, N, C)`. `fmt` says whether a picture is `NCHW` or `NHWC`.

    Raises:
        VitnasError: it is neither tokens nor a picture.
    """
    if not isinstance(output, Tensor) or output.ndim not in (3, 4):
        raise VitnasError("a block's output must be tokens (B, N, C) or a picture, and is neither")
    if output.ndim == 3:
        return output
    picture = output if fmt.endswith("NHWC") else output.permute(0, 2, 3, 1)
    return picture.flatten(1, 2)


def token_order(place: LayerPlace, inside: int) -> Tensor | None:
    """Positions of the n tokens of each of g groups, `(g, n)`; None if all tokens see each other.

    The groups are those of `mhsa` in this pass, or the windows of `ska`, `cska`, timm's Swin or
    SKA's.

    Args:
        place: the pass and block of the map.
        inside: number n of tokens in a map that the hook receives.

    Raises:
        VitnasError: a window reaches over the edge of the picture.
    """
    mixer = place.attention
    places = getattr(getattr(place.owner, "attn", None), "places", None)
    if isinstance(places, Places):
        positions = places.shifted(torch.arange(math.prod(places.grid))[None, :, None])
        return to_windows(positions, places.grid, places.windows)[..., 0]
    if isinstance(mixer, MultiHeadSelfAttention):
        return _group_order(mixer, max(0, place.passed - 1), inside)
    if isinstance(mixer, StaticKeyMixer) and mixer.windows > 1 and mixer.grid is not None:
        positions = torch.arange(inside * mixer.windows**2)[None, :, None]
        return to_windows(positions, mixer.grid, mixer.windows)[..., 0]
    if all(hasattr(place.owner, n) for n in ("input_resolution", "window_size", "shift_size")):
        return _window_order(place.owner)
    return None


def to_true_order(attention: Tensor, order: Tensor) -> Tensor:
    """Maps inside g groups `(B * g, h, n, n)` -> `(B, h, N, N)`, zero between groups."""
    groups, inside = order.shape
    inner = torch.unflatten(attention, 0, (-1, groups)).transpose(1, 2)  # (B, h, g, n, n)
    size = groups * inside
    whole = inner.new_zeros(*inner.shape[:2], size, size)
    whole[:, :, order[:, :, None], order[:, None, :]] = inner
    return whole


def _taps(places: Sequence[LayerPlace]) -> list[tuple[nn.Module, list[int]]]:
    """Every module that needs a hook, with the indices of its places in the order of passes."""
    found: dict[int, tuple[nn.Module, list[int]]] = {}
    for index, place in enumerate(places):
        if place.tap is not None and not place.absent:
            found.setdefault(id(place.tap), (place.tap, []))[1].append(index)
    return list(found.values())


def _map_hook(places: Sequence[LayerPlace], indices: Sequence[int], see: Seen) -> Any:
    """A hook that counts its calls: a pass has one for each run of the attention."""
    calls, runs = 0, places[indices[0]].runs
    orders: dict[int, Tensor | None] = {}

    def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal calls
        calls += 1
        if calls % runs:
            return
        index = indices[(calls // runs - 1) % len(indices)]
        if index not in orders:
            orders[index] = token_order(places[index], output.shape[-1])
        order = orders[index]
        see(index, output if order is None else to_true_order(output, order.to(output.device)))

    return hook


def _feature_hook(index: int, see: Seen, fmt: str) -> Any:
    def hook(module: nn.Module, inputs: Any, output: Any) -> None:
        see(index, as_tokens(output, fmt))

    return hook


def _group_order(mixer: MultiHeadSelfAttention, passed: int, inside: int) -> Tensor | None:
    number, name = mixer.groups[passed], str(passed)
    if number == 1:
        return None
    order: Any = torch.arange(number * inside)  # contiguous windows, unless permuted
    if name in mixer.shuffles:
        order = mixer.shuffles[name].order
    return torch.unflatten(order, 0, (number, inside))


def _window_order(block: Any) -> Tensor | None:
    height, width = block.input_resolution
    down, across = block.window_size
    if height % down or width % across:
        raise VitnasError("windows of attention reach over the picture's edge; not supported")
    positions = torch.arange(height * width).reshape(height, width)
    shifted = positions.roll((-block.shift_size[0], -block.shift_size[1]), dims=(0, 1))
    windows = shifted.reshape(height // down, down, width // across, across)
    return windows.transpose(1, 2).reshape(-1, down * across)
