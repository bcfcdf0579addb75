"""The loss around a network's weights along two random directions (SReT, Fig. 9)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import product
from math import hypot
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call

from vitnas.data.telling import Tell
from vitnas.diagnose import draw
from vitnas.diagnose.observer import Finding, plain
from vitnas.diagnose.survey import MOST_IMAGES
from vitnas.durations import clock
from vitnas.errors import ConfigError, VitnasError
from vitnas.nn.modes import evaluating
from vitnas.plotting import COLOURS, FAINT
from vitnas.seeds import derive_seed
from vitnas.training.split import Split

POINTS = 21
"""Points on each side of the grid: 441 losses."""
RISE = 1.0
"""The rise of the loss that counts, in nats: the true class is then e times less likely, as a
geometric mean over images."""
_MOST_DRAWN = 10.0  # above the network's own loss, in nats; all that is higher has one colour
_LEVELS = 14
_SILENT_S = 5.0
_TICKS = (-1.0, -0.5, 0.0, 0.5, 1.0)

Grid = npt.NDArray[np.float64]


def axis_of(points: int) -> list[float]:
    """`points` places from -1 to 1, with 0 in the middle.

    Raises:
        ConfigError: there is no middle.
    """
    half, is_even = points // 2, points % 2 == 0
    if is_even or half < 1:
        rule = "must be an odd number from 3, so that the network itself is the middle point"
        raise ConfigError(rule, address="--points", value=points, nearest=max(3, points + is_even))
    return [place / half for place in range(-half, half + 1)]


def direction_of(weight: Tensor, generator: torch.Generator) -> Tensor:
    """A random direction of a parameter, in which each filter is as long as the weight's.

    A filter is what stands at one place of the first dimension. Biases, norms and every other
    parameter of less than two dimensions have the direction zero.

    Source: Li et al., "Visualizing the Loss Landscape of Neural Nets", 2018, Section 4.
    """
    if weight.ndim < 2:
        return torch.zeros_like(weight)
    drawn = torch.randn(weight.shape, generator=generator).to(weight)
    lengths = [each.flatten(1).norm(dim=1) for each in (weight, drawn)]
    scale = lengths[0] / lengths[1].clamp_min(torch.finfo(drawn.dtype).tiny)
    return drawn.mul_(scale.reshape(-1, *[1] * (weight.ndim - 1)))


def mean_loss(network: nn.Module, images: Split, weights: Mapping[str, Tensor]) -> float:
    """Mean cross entropy of the images, in nats, by the network with other weights."""
    total = torch.zeros((), dtype=torch.float64)
    for x, y in images.batches(MOST_IMAGES):
        shown, y = (part.to(_device(network)) for part in (images.normalise(x), y))
        scores = functional_call(network, dict(weights), (shown,))
        total += nn.functional.cross_entropy(scores.float(), y, reduction="sum").cpu()
    return float(total) / len(images)


def losses_around(
    network: nn.Module,
    images: Split,
    axis: list[float],
    seed: int,
    notice: Tell = lambda line: None,
) -> Grid:
    """The mean loss at each point of the grid `axis` x `axis`; the network does not change.

    Entry (i, j) is that of the weights + axis[i] * the first + axis[j] * the second direction.
    """
    losses, told = np.empty((len(axis), len(axis))), _Progress(notice, len(axis) ** 2)
    generator = torch.Generator().manual_seed(derive_seed("landscape", seed))
    weights = {name: weight.detach() for name, weight in network.named_parameters()}
    first, second = (
        {name: direction_of(weight, generator) for name, weight in weights.items()}
        for _ in range(2)
    )

    def at(a: float, b: float) -> float:
        moved = {name: w + a * first[name] + b * second[name] for name, w in weights.items()}
        return mean_loss(network, images, moved)

    with evaluating(network):
        for (i, a), (j, b) in product(enumerate(axis), repeat=2):
            losses[i, j] = at(a, b)
            told.one_more()
    return losses


class _Progress:
    """Tells how many of `total` points are done, at most once in five seconds."""

    def __init__(self, notice: Tell, total: int) -> None:
        self._notice, self._total, self._done = notice, total, 0
        self._began = self._told = time.monotonic()

    def one_more(self) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._told < _SILENT_S or self._done == self._total:
            return
        self._told = now
        left = (now - self._began) * (self._total - self._done) / self._done
        self._notice(f"[{self._done}/{self._total}] points of landscape  ({clock(left)} left)")


def reach(losses: Grid, axis: list[float]) -> float:
    """How far one can go from the middle before the loss has risen by `RISE`: 0 to 1.

    The mean over the eight rays of the grid, along the directions and between them. On a ray the
    loss is interpolated between the points; a loss that is not finite is higher than all. A ray
    that stays below has 1.
    """
    middle, most = len(axis) // 2, float(losses[len(axis) // 2, len(axis) // 2]) + RISE
    found = []
    for down, right in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b):
        ray = [losses[middle + down * k, middle + right * k] for k in range(middle + 1)]
        over = next((k for k, loss in enumerate(ray) if not loss <= most), None)
        if over is None:
            found.append(1.0)
            continue
        below, above = ray[over - 1], ray[over]
        part = (most - below) / (above - below) if np.isfinite(above) else 0.0
        found.append(min(1.0, (over - 1 + part) / middle * hypot(down, right)))
    return float(np.mean(found))


def landscape_finding(
    network: nn.Module,
    images: Split,
    classes: int | None,
    points: int = POINTS,
    seed: int = 0,
    notice: Tell = lambda line: None,
) -> Finding:
    """The loss on a grid around the weights, with a figure.

    Source: SReT, Fig. 9, which cites Li et al. (2018). Statistics of BatchNorm are as they are.

    Args:
        network: in any mode, on any device; it does not change.
        images: those whose loss it is.
        classes: of how many classes they are; None = of none.
        points: on each side, odd.
        seed: of the two directions.
        notice: told how many points are done, at most once in five seconds.

    Raises:
        ConfigError: `points` is even.
        VitnasError: the images are of other classes than the network, or its loss is not finite.
    """
    axis = axis_of(points)
    _check_classes(network, images, classes)
    losses = losses_around(network, images, axis, seed, notice)
    centre = float(losses[points // 2, points // 2])
    if not np.isfinite(centre):
        raise VitnasError("the loss of the network itself is not finite")
    far, lost = reach(losses, axis), int((~np.isfinite(losses)).sum())
    numbers: dict[str, Any] = {
        "meaning": "loss[i][j]: mean cross entropy of the images, in nats, with the weights moved "
        "by axis[i] along one random direction and by axis[j] along another (SReT, Fig. 9; Li et "
        "al., 2018); null = not finite. In a direction each filter is as long as the network's; "
        "biases and norms do not move. centre: loss of the network itself. reach: mean distance "
        f"from it, over eight rays, at which the loss is {RISE:g} higher; 1 = it never is",
        "images": len(images),
        "centre": round(centre, 6),
        "reach": round(far, 6),
        "not_finite": lost,
        "axis": axis,
        "loss": plain(torch.from_numpy(losses)),
    }
    summary = f"loss {centre:.2f}, {RISE:g} higher at a distance of {far:.2f} (1 = as the weights)"
    summary += f"; {lost} of {losses.size} points not finite" if lost else ""
    return Finding(summary, numbers, _figure(axis, losses))


def _check_classes(network: nn.Module, images: Split, classes: int | None) -> None:
    if classes is None:
        raise VitnasError("the images have no classes of this network, so they have no loss")
    with evaluating(network):
        scores = network(images.normalise(images.x[:1]).to(_device(network)))
    shape = tuple(getattr(scores, "shape", ()))
    if shape != (1, classes):
        gives = f"gives {shape[1]} scores" if len(shape) == 2 else "gives no scores of classes"
        raise VitnasError(f"the network {gives} and the images have {classes} classes")


def _device(network: nn.Module) -> torch.device:
    return next(network.parameters()).device


def _figure(axis: list[float], losses: Grid) -> bytes:
    middle = len(axis) // 2
    known = np.ma.masked_invalid(losses)
    top = min(float(known.max()), float(losses[middle, middle]) + _MOST_DRAWN)
    figure = draw.new_figure(
        "Loss landscape around the network",
        "The network is in the middle. At 1 a direction is as long as the weights, filter by "
        "filter. Levels are spaced by ratio. Grey: not finite",
        9.4,
        4.6,
    )
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    contours(figure, left, axis, losses, top)
    for values, name, colour in (
        (known[:, middle], "first", COLOURS[0]),
        (known[middle], "second", COLOURS[1]),
    ):
        right.plot(axis, values, label=f"{name} direction", color=colour, lw=1.5)
    draw.dress(right, "place on a direction, the other at 0", "cross entropy, nats")
    right.set_ylim(0, 1.05 * max(top, RISE))
    right.set_xticks(_TICKS)
    right.legend(fontsize=8, frameon=False)
    return draw.png(figure)


def contours(figure: Any, axes: Any, axis: list[float], losses: Grid, top: float) -> None:
    """Filled contours with levels of two digits from the lowest loss to `top`; grey: not finite."""
    from matplotlib.colors import BoundaryNorm

    known = np.ma.masked_invalid(losses)
    low = max(float(known.min()), top / 1000, 1e-6)
    spaced = np.geomspace(low, max(top, 1.2 * low), _LEVELS)
    levels = np.unique([float(f"{level:.2g}") for level in spaced])
    axes.set_facecolor(FAINT)
    norm = BoundaryNorm(levels, 256, extend="both")
    filled = axes.contourf(axis, axis, known.T, levels, cmap=draw.DEPTH, norm=norm, extend="both")
    crossed = levels[(levels > known.min()) & (levels < known.max())]
    if crossed.size:
        axes.contour(axis, axis, known.T, crossed, colors="white", linewidths=0.4)
    axes.plot(0, 0, "+", color="white", markersize=8)
    axes.set_aspect("equal")
    draw.dress(axes, "first direction", "second direction")
    axes.grid(visible=False)
    axes.set_xticks(_TICKS)
    axes.set_yticks(_TICKS)
    draw.colour_bar(figure, filled, axes, "cross entropy, nats")
