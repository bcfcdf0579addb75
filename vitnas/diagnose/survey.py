"""Finds by one image which layers of a network can be observed, and how much fits into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from vitnas.diagnose.hooks import watching
from vitnas.diagnose.layers import Layer, LayerPlace, find_places, grid_of, name_of
from vitnas.errors import VitnasError

MOST_OF_A_MAP = 1 << 28
"""Most numbers in one block's map of one image, 1 GiB: 3136 tokens and 27 heads, 9216 and 3."""
MOST_HELD = 1 << 26
"""Most numbers in the maps that a stage's comparison holds at a time, 256 MiB."""
MOST_SEEN = 1 << 34
"""Most numbers in all maps of all images. A network with larger maps sees fewer images."""
MOST_IMAGES = 32
"""Most images in a batch."""


@dataclass(frozen=True)
class Survey:
    """The layers of a network that can be observed.

    Attributes:
        network: the network.
        places, layers: one for each pass of every block, in order. Broad attention is last.
    """

    network: nn.Module
    places: tuple[LayerPlace, ...]
    layers: tuple[Layer, ...]

    @property
    def with_maps(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.layers if not layer.absent)

    @property
    def num_stages(self) -> int:
        return len({layer.stage for layer in self.layers})

    @property
    def largest_comparison(self) -> int:
        """Numbers in all maps of one image in the stage with the most numbers."""
        return max((sum(map(map_size, group)) for group in comparable(self.with_maps)), default=1)

    @property
    def map_batch(self) -> int:
        """Number of images whose maps are held at a time."""
        return max(1, min(MOST_IMAGES, MOST_HELD // self.largest_comparison))

    @property
    def most_map_images(self) -> int:
        """Most images whose maps are read."""
        return max(1, MOST_SEEN // max(1, sum(map(map_size, self.with_maps))))


def map_size(layer: Layer) -> int:
    """Numbers in a layer's map of one image: h N^2."""
    return layer.heads * layer.tokens**2


def comparable(layers: Sequence[Layer]) -> list[list[Layer]]:
    """Groups of layers whose maps can be compared entry by entry: same stage, N and heads."""
    groups: dict[tuple[int, int, int], list[Layer]] = {}
    for layer in layers:
        groups.setdefault((layer.stage, layer.tokens, layer.heads), []).append(layer)
    return list(groups.values())


def survey(network: nn.Module, image: Tensor, *, maps: bool = True) -> Survey:
    """Find the layers of a network by showing it one image.

    Args:
        network: our network or timm's. It does not change.
        image: `(1, C, H, W)`, normalised, on the network's device.
        maps: whether maps will be observed; otherwise none is built.

    Raises:
        VitnasError: its blocks cannot be found, or a map is too large.
    """
    places = find_places(network)
    features: dict[int, Tensor] = {}
    attention: dict[int, tuple[int, ...]] = {}

    def see_map(index: int, found: Tensor) -> None:
        attention[index] = tuple(found.shape)

    watch = watching(network, places, see_map if maps else None, features.__setitem__)
    with _limited(places if maps else ()), watch:
        network(image)
    shapes = {index: tuple(found.shape[1:]) for index, found in features.items()}
    if maps:
        places = [
            replace(place, absent=place.absent or _why_no_map(attention.get(i), shapes[i][0]))
            for i, place in enumerate(places)
        ]
    height, width = image.shape[-2:]
    prefix = _prefix_tokens(network)
    layers = [
        _layer(places, i, shapes[i], prefix, (height, width), attention.get(i))
        for i in range(len(places))
    ]
    return Survey(network, tuple(places), tuple(layers))


def _layer(
    places: Sequence[LayerPlace],
    index: int,
    shape: tuple[int, ...],
    prefix: int,
    image_hw: tuple[int, int],
    attention: tuple[int, ...] | None,
) -> Layer:
    place, (tokens, dim) = places[index], shape
    stages = len({other.stage for other in places})
    name, label = name_of(place, stages=stages)
    grid = grid_of(tokens - prefix, image_hw) if tokens > prefix else None
    if grid is None and (whole := grid_of(tokens, image_hw)) is not None:
        grid, prefix = whole, 0  # CaiT's class token comes after these blocks
    later = (other for other in places[index + 1 :] if other.block)
    return Layer(
        index=index,
        name=name,
        label=label,
        stage=place.stage,
        mixer=place.mixer,
        tokens=tokens,
        dim=dim,
        prefix=prefix,
        grid=grid,
        heads=attention[1] if attention is not None and not place.absent else 0,
        absent=place.absent,
        last=place.block > 0 and all(other.stage != place.stage for other in later),
    )


def _why_no_map(shape: tuple[int, ...] | None, tokens: int) -> str:
    if shape is None:
        return "its attention builds no map"
    if shape[-2:] != (tokens, tokens):
        return f"its map is {shape[-2]} x {shape[-1]}, not over all pairs of {tokens} tokens"
    return ""


def _prefix_tokens(network: nn.Module) -> int:
    config: Any = getattr(network, "config", None)
    own = getattr(config, "num_prefix_tokens", 0)
    return int(getattr(network, "num_prefix_tokens", own) or 0)


@contextmanager
def _limited(places: Sequence[LayerPlace]) -> Iterator[None]:
    """A context in which an attention raises before it builds too large a map of one image."""
    with ExitStack() as stack:
        for place in places:
            if place.attention is not None:
                check = _size_check(place)
                stack.callback(place.attention.register_forward_pre_hook(check).remove)
        yield


def _size_check(place: LayerPlace) -> Any:
    def check(module: nn.Module, inputs: Any) -> None:
        x = inputs[0] if inputs else None
        heads = getattr(module, "num_heads", 1)
        if not isinstance(x, Tensor) or x.ndim != 3 or not isinstance(heads, int):
            return
        tokens = x.shape[0] * x.shape[1]  # windows are folded into the batch
        if heads * tokens**2 > MOST_OF_A_MAP:
            raise VitnasError(
                f"stage {place.stage}, block {place.block}: a map of {heads} heads and {tokens:,} "
                f"tokens takes {heads * tokens**2 / (1 << 28):.1f} GiB per image, and the limit is "
                "1 GiB; use a smaller img_size, or --only features,cka"
            )

    return check
