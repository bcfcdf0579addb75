"""Reading maps and features of a running network by forward hooks, which are removed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vitnas.diagnose.layers import LayerPlace
from vitnas.errors import VitnasError
from vitnas.nn.mixers.mhsa import MultiHeadSelfAttention
from vitnas.nn.modes import evaluating

Seen = Callable[[int, Tensor], None]
"""Called with a place's index and what was seen there."""


@contextmanager
def unfused(network: nn.Module) -> Iterator[None]:
    """Inside, attention builds its map (`fused_attn` is off, ours and timm's); then as before."""
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
    """Inside, the two functions see what runs through `network`, in eval mode.

    Maps come as `(B, h, N, N)` with tokens in their true order and zeros where group or window
    attention does not look; features as `(B, N, C)`.
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
    """A block's output as `(B, N, C)`; pictures are `NCHW` or `NHWC`.

    Raises:
        VitnasError: it is neither tokens nor a picture.
    """
    if not isinstance(output, Tensor) or output.ndim not in (3, 4):
        raise VitnasError("the network's blocks give neither tokens (B, N, C) nor pictures")
    if output.ndim == 3:
        return output
    picture = output if fmt.endswith("NHWC") else output.permute(0, 2, 3, 1)
    return picture.flatten(1, 2)


def token_order(place: LayerPlace, inside: int) -> Tensor | None:
    """Positions of the tokens of each group, `(g, n)`; None if every token sees all others.

    For grouped `mhsa` in this pass, and for blocks with shifted windows (timm's Swin).

    Args:
        place: where the map is from.
        inside: number n of tokens in a map as the hook gets it.

    Raises:
        VitnasError: a window reaches beyond the edge of the picture.
    """
    mixer = place.attention
    if isinstance(mixer, MultiHeadSelfAttention):
        return _group_order(mixer, max(0, place.passed - 1), inside)
    if all(hasattr(place.owner, n) for n in ("input_resolution", "window_size", "shift_size")):
        return _window_order(place.owner)
    return None


def to_true_order(attention: Tensor, order: Tensor) -> Tensor:
    """Maps inside g groups, `(B * g, h, n, n)`, as `(B, h, N, N)`, zero outside the groups."""
    groups, inside = order.shape
    inner = torch.unflatten(attention, 0, (-1, groups)).transpose(1, 2)  # (B, h, g, n, n)
    size = groups * inside
    whole = inner.new_zeros(*inner.shape[:2], size, size)
    whole[:, :, order[:, :, None], order[:, None, :]] = inner
    return whole


def _taps(places: Sequence[LayerPlace]) -> list[tuple[nn.Module, list[int]]]:
    """Every module to hook, with its places in the order of its passes."""
    found: dict[int, tuple[nn.Module, list[int]]] = {}
    for index, place in enumerate(places):
        if place.tap is not None and not place.absent:
            found.setdefault(id(place.tap), (place.tap, []))[1].append(index)
    return list(found.values())


def _map_hook(places: Sequence[LayerPlace], indices: Sequence[int], see: Seen) -> Any:
    """Counts its calls: the k-th of one image is the k-th pass."""
    calls = 0
    orders: dict[int, Tensor | None] = {}

    def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal calls
        index = indices[calls % len(indices)]
        calls += 1
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
