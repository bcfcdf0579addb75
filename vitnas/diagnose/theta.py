"""The matrices Theta that mix the heads in re-attention (DeepViT, Fig. 8c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vitnas.diagnose import draw
from vitnas.diagnose.layers import Layer, LayerPlace
from vitnas.diagnose.observer import Finding, plain
from vitnas.errors import VitnasError
from vitnas.nn.layers.reattention import Reattention
from vitnas.plotting import INK

_MOST_PANELS = 12


def theta_of(tap: nn.Module | None) -> Tensor | None:
    """Theta `(h, h)` of the re-attention in a module; None without. Row a makes the new head a."""
    found = tap.modules() if tap is not None else ()
    for module in found:
        if isinstance(module, Reattention):
            return module.theta.weight.detach().flatten(1).float().cpu()
    return None


def from_others(theta: Tensor) -> float:
    """The share of a matrix's weight that is off its diagonal, by absolute values: 0 to 1."""
    size = theta.abs()
    return 1 - float(size.diagonal().sum() / size.sum().clamp_min(torch.finfo(size.dtype).tiny))


def theta_finding(places: Sequence[LayerPlace], layers: Sequence[Layer]) -> Finding:
    """Theta of each block with re-attention; the passes of a block share one.

    Source: DeepViT, Fig. 8c. Theta starts as the identity, so what is off its diagonal was learned.

    Raises:
        VitnasError: no block has re-attention.
    """
    found: dict[int, tuple[Layer, Tensor]] = {}
    for place, layer in zip(places, layers, strict=True):
        theta = theta_of(place.tap)
        if theta is not None:
            found.setdefault(id(place.tap), (layer, theta))
    if not found:
        raise VitnasError("no block of this network has re-attention")
    matrices = list(found.values())
    shares = [from_others(theta) for _, theta in matrices]
    numbers: dict[str, Any] = {
        "meaning": "theta[a][b]: weight of head b's map in the new map of head a, before the norm "
        "(DeepViT, Eq. 3 and Fig. 8c). from_others: share of the weights, by absolute values, that "
        "is off the diagonal; 0 at the start of a training",
        "layers": [
            {"layer": layer.name, "from_others": round(share, 6), "theta": plain(theta)}
            for (layer, theta), share in zip(matrices, shares, strict=True)
        ],
    }
    ends = f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"
    return Finding(f"{ends} of Theta's weights come from other heads", numbers, _figure(matrices))


def _figure(matrices: Sequence[tuple[Layer, Tensor]]) -> bytes:
    shown = matrices[-_MOST_PANELS:]
    left_out = f" The last {len(shown)} of {len(matrices)}." if len(shown) < len(matrices) else ""
    columns = min(4, len(shown))
    rows = -(-len(shown) // columns)
    figure = draw.new_figure(
        "Theta of re-attention",
        f"Rows: new heads; columns: the heads that they are made of.{left_out}",
        max(5.0, 2.3 * columns + 1.2),
        2.5 * rows + 0.8,
    )
    panels = figure.subplots(rows, columns, squeeze=False)
    most = max(float(theta.abs().max()) for _, theta in shown)
    for axes in panels.flat[len(shown) :]:
        axes.axis("off")
    for axes, (layer, theta) in zip(panels.flat, shown, strict=False):
        image = axes.imshow(theta.numpy(), cmap="RdBu_r", vmin=-most, vmax=most)
        axes.set_title(f"block {layer.label}", loc="left", fontsize=10, color=INK)
        ticks = draw.some_ticks(len(theta), 8)
        axes.set_xticks(ticks, [tick + 1 for tick in ticks], fontsize=8)
        axes.set_yticks(ticks, [tick + 1 for tick in ticks], fontsize=8)
    draw.colour_bar(figure, image, panels, "weight")
    return draw.png(figure)
