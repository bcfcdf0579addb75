"""Our token mixers against the papers' own pseudo-code written plainly: time and peak memory.

The plain forms hold every map, loop over groups and attend before they pool, as the papers do;
they share our modules' weights and must give the same output. A step is forward and backward.
Ours and the plain one take turns in one run; a ratio above 1 says that ours is faster, or needs
less memory. Peak memory on the CPU is what a step adds to the resident set of a process of its own.
"""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from common import conclude, is_quick, peak_growth, rounded, seconds_of, show
from torch import Tensor

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.nn.broad import BroadAttention, LayerShape
from vitnas.nn.layers.tokens import to_picture, to_tokens
from vitnas.nn.mixers import Place, Tap, TokenMixer, build_mixer

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Step = Callable[[], Tensor]


@dataclass(frozen=True)
class Shape:
    """Images a batch, grid side, channels, heads."""

    name: str
    batch: int
    side: int
    dim: int
    heads: int


SHAPES = (Shape("32 px", 64, 8, 128, 4), Shape("224 px", 8, 14, 384, 6))
QUICK = (Shape("32 px", 4, 4, 32, 2),)


class Pair:
    """One mixer in two forms over the same weights and the same input."""

    def __init__(self, shape: Shape, token_mixer: str, **fields: object) -> None:
        stage = {"token_mixer": token_mixer, "embed_dim": shape.dim}
        if token_mixer != "dwconv":
            stage["num_heads"] = shape.heads
        stage["groups"] = [fields.pop("g", 1)]
        tree = {"img_size": shape.side, "stem": {"stride": 1}, "stages": [stage], **fields}
        place = Place(validate(ModelConfig, tree), 0, reattention="reattention_blocks" in fields)
        torch.manual_seed(0)
        self.grid, self.heads = place.grid, shape.heads
        self.mixer: TokenMixer = build_mixer(place).eval().to(DEVICE)
        self.x = torch.randn(shape.batch, place.num_tokens, shape.dim, device=DEVICE)
        self.x.requires_grad_()

    def ours(self) -> Tensor:
        out: Tensor = self.mixer(self.x, self.grid)
        return out

    def plain(self) -> Tensor:
        raise NotImplementedError

    def split(self, x: Tensor) -> Tensor:
        """`(B, N, C)` -> `(B, h, N, d)`."""
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """With the map written out; three `(B, h, N, d)` -> `(B, N, C)`."""
        attention = ((query @ key.transpose(-2, -1)) * query.shape[-1] ** -0.5).softmax(dim=-1)
        return (attention @ value).transpose(1, 2).flatten(2)


class Mhsa(Pair):
    """Vaswani et al."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "mhsa")

    def plain(self) -> Tensor:
        query, key, value = map(self.split, self.mixer.qkv(self.x).chunk(3, dim=-1))
        out: Tensor = self.mixer.proj(self.attend(query, key, value))
        return out


class Reattention(Pair):
    """DeepViT, Algorithm 1 and Eq. 3."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "mhsa", reattention_blocks=1)

    def plain(self) -> Tensor:
        query, key, value = map(self.split, self.mixer.qkv(self.x).chunk(3, dim=-1))
        logits = (query @ key.transpose(-2, -1)) * query.shape[-1] ** -0.5
        mix = self.mixer.reattention
        mixed = mix.norm(mix.theta(logits.softmax(dim=-1)))
        out: Tensor = self.mixer.proj((mixed @ value).transpose(1, 2).flatten(2))
        return out


class SlicedGroups(Pair):
    """SReT, Algorithm 1: permute, a loop over the groups, concatenate, invert."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "mhsa", g=4)

    def plain(self) -> Tensor:
        query, key, value = map(self.split, self.mixer.qkv(self.x).chunk(3, dim=-1))
        shuffle = next(iter(self.mixer.shuffles.children()))
        parts = zip(
            *(part[:, :, shuffle.order].chunk(4, dim=2) for part in (query, key, value)),
            strict=True,
        )
        whole = torch.cat([self.attend(*part) for part in parts], dim=1)
        out: Tensor = self.mixer.proj(whole[:, shuffle.inverse])
        return out


class StaticKey(Pair):
    """SKA, Algorithm 1."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "ska")

    def plain(self) -> Tensor:
        query, value = map(self.split, self.mixer.qv(self.x).chunk(2, dim=-1))
        out: Tensor = self.mixer.proj(self.attend(query, self.mixer.static_key, value))
        return out


class ConvStaticKey(Pair):
    """SKA, Section 4.2: the grouped convolution's channels are the rows of the map."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "cska")

    def plain(self) -> Tensor:
        query, value = self.mixer.qv(self.x).chunk(2, dim=-1)
        tokens = self.x.shape[1]
        conv = self.mixer.key
        picture = F.conv2d(
            to_picture(query, self.grid), conv.weight, conv.bias, padding=1, groups=self.heads
        )
        logits = picture.reshape(-1, self.heads, tokens, tokens).transpose(-2, -1)
        attention = (logits * (query.shape[-1] // self.heads) ** -0.5).softmax(dim=-1)
        mixed = (attention @ self.split(value)).transpose(1, 2).flatten(2)
        out: Tensor = self.mixer.proj(mixed)
        return out


class SeparableConv(Pair):
    """MetaFormer baselines: pointwise, StarReLU, depthwise, pointwise."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "dwconv")

    def plain(self) -> Tensor:
        mixer = self.mixer
        hidden = mixer.expand(self.x)
        hidden = mixer.act.scale * F.relu(hidden) ** 2 + mixer.act.bias
        out: Tensor = mixer.reduce(to_tokens(mixer.depthwise(to_picture(hidden, self.grid))))
        return out


class Broad(Pair):
    """BViT, Eq. 5 to 8, over six layers: attend with all values, then pool adjacent channels."""

    layers = 6

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "mhsa")
        source = LayerShape(self.grid, shape.heads, shape.dim)
        self.broad = BroadAttention(1.0, source, [source] * self.layers)
        sizes = (shape.batch, shape.heads, shape.side**2, shape.dim // shape.heads)
        self.taps = [
            Tap(*(torch.randn(sizes, device=DEVICE, requires_grad=True) for _ in range(3)))
            for _ in range(self.layers)
        ]

    def ours(self) -> Tensor:
        out: Tensor = self.broad(self.x, self.taps)
        return out

    def plain(self) -> Tensor:
        query, key, value = (
            torch.cat([tap[part] for tap in self.taps], dim=-1) for part in range(3)
        )
        logits = (query @ key.transpose(-2, -1)) * self.taps[0].query.shape[-1] ** -0.5
        out = (logits.softmax(dim=-1) @ value).transpose(1, 2).flatten(2)
        return self.x + F.adaptive_avg_pool1d(out, self.x.shape[-1])


PAIRS: tuple[type[Pair], ...] = (
    Mhsa,
    Reattention,
    SlicedGroups,
    StaticKey,
    ConvStaticKey,
    SeparableConv,
    Broad,
)
NAMES = ("mhsa", "re-attention", "mhsa, g 4", "ska", "cska", "dwconv", "broad, 6 layers")


def step_seconds(step: Step) -> float:
    """Wall time of forward and backward."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()

    def run() -> None:
        step().square().mean().backward()
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    return seconds_of(run)


def time_ratio(pair: Pair, repeats: int) -> tuple[float, float]:
    """Seconds of our step, and the median over the repeats of plain / ours, taken in turns."""
    torch.testing.assert_close(pair.ours(), pair.plain(), rtol=1e-3, atol=1e-4)
    ours, ratios = [], []
    for repeat in range(repeats + 2):
        first, second = (pair.ours, pair.plain) if repeat % 2 else (pair.plain, pair.ours)
        times = {first: step_seconds(first), second: step_seconds(second)}
        if repeat >= 2:  # warm by now
            ours.append(times[pair.ours])
            ratios.append(times[pair.plain] / times[pair.ours])
    return statistics.median(ours), statistics.median(ratios)


def peak_bytes(index: int, shape: Shape, form: str) -> float:
    """Most bytes that one step adds."""
    if DEVICE == "cuda":
        return _peak_on_cuda(getattr(PAIRS[index](shape), form))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_on_cpu, (index, shape, form))


def _peak_on_cuda(step: Step) -> float:
    step_seconds(step)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step_seconds(step)
    return float(torch.cuda.max_memory_allocated() - before)


def _peak_on_cpu(index: int, shape: Shape, form: str) -> float:
    torch.set_num_threads(1)
    tiny = Shape("warm-up", 1, 4, 32, 2)
    step_seconds(getattr(PAIRS[index](tiny), form))  # what libraries allocate at first use
    pair = PAIRS[index](shape)
    return peak_growth(partial(step_seconds, getattr(pair, form)))


def main() -> None:
    quick = is_quick(__doc__)
    torch.set_num_threads(1)
    figures: dict[str, float | str | list[str]] = {"device": _device_name()}
    rows = []
    for shape in QUICK if quick else SHAPES:
        for index, name in enumerate(NAMES):
            seconds, faster = time_ratio(PAIRS[index](shape), 3 if quick else 15)
            ours, plain = (peak_bytes(index, shape, form) for form in ("ours", "plain"))
            lighter = plain / ours if ours else 1.0
            label = f"{name}, {shape.name}"
            figures[f"time: {label}"] = rounded(faster)
            figures[f"memory: {label}"] = rounded(lighter)
            peaks = f"{ours / 2**20:.1f}", f"{lighter:.2f}x"
            rows.append((label, f"{1e3 * seconds:.2f}", f"{faster:.2f}x", *peaks))
    show(("mixer", "ours, ms", "plain / ours", "ours, MiB", "plain / ours"), rows)
    times = [value for name, value in figures.items() if name.startswith("time: ")]
    figures["slowest_ratio"] = min(value for value in times if isinstance(value, float))
    conclude("mixers", quick, figures, {"slowest_ratio": {"min": 0.95}})


def _device_name() -> str:
    return torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu, one thread"


if __name__ == "__main__":
    main()
