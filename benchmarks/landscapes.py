"""Loss landscapes of three trained stacks of 108 layers, as SReT's Figure 9 has them, in small.

The figure shows DeiT-108, SReT-108 and SReT-108 trained in mixed depth, all on ImageNet; the paper
says that DeiT-108's is the more chaotic one, hence harder to optimize. Here each network of the zoo
has an eighth of its channels, and is trained on 1,710 images of Fashion-MNIST at 32 px by one
recipe. For each seed: top-1 on images that trained nothing, their mean loss, and how far one can go
from the weights until it is 1 nat higher (`vitnas diagnose --only landscape`). `rough` is how much
of the way that the loss goes along the grid's lines is there and back: 0 where it rises without a
break on both sides of the lowest point. `--to FILE` draws the landscapes of the first seed.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Bound, Figures, conclude, quick_parser, rounded, show

STACKS = {
    "DeiT-108": ("deit_108", False),
    "SReT-108": ("sret_108", False),
    "SReT-108, mixed depth": ("sret_108", True),
}
SHRINK = 8
STRIDES = {"deit_108": 8, "sret_108": 4}
RECIPE = {"batch_size": 32, "optimizer": "adamw", "lr": 1e-3, "warmup_epochs": 2.0}
MOST_SCORED = 512


class Seen(NamedTuple):
    """One training: top-1 in percent, and the landscape around its weights."""

    top1: float
    axis: list[float]
    losses: Any

    @property
    def centre(self) -> float:
        """Loss of the network itself, in nats."""
        middle = len(self.axis) // 2
        return float(self.losses[middle, middle])


def stack(name: str) -> Any:
    """A network of the zoo with an eighth of its channels, for grey images of 32 px."""
    from vitnas.config.files import validate
    from vitnas.config.model import ModelConfig
    from vitnas.nn.zoo import zoo_config

    tree = zoo_config(name).model_dump()
    tree["stem"]["stride"] = STRIDES[name]
    for stage in tree["stages"]:
        stage["embed_dim"] //= SHRINK
        stage |= {"head_dim": 8, "num_heads": None}
    return validate(ModelConfig, {**tree, "img_size": 32, "in_chans": 1, "num_classes": 10})


def trained(name: str, seed: int, epochs: int, share: float, points: int) -> Seen:
    """Train one stack, and look around its weights."""
    import torch

    from vitnas.config.data import DataConfig
    from vitnas.config.training import ProxyConfig
    from vitnas.diagnose.landscape import axis_of, losses_around
    from vitnas.nn.model import build_model
    from vitnas.training.data import load_data
    from vitnas.training.proxy import Training

    zoo_name, is_mixed = STACKS[name]
    data = DataConfig.model_validate({"name": "fashion_mnist", "val_fraction": 0.05})
    images = load_data(data, 32)
    changes = {"epochs": epochs, "train_fraction": share, "mixed_depth": is_mixed}
    proxy = ProxyConfig.model_validate({**RECIPE, **changes})
    torch.manual_seed(seed)
    training = Training(build_model(stack(zoo_name)), proxy, images, seed)
    top1 = [result.top1 for result in training][-1]
    axis, scored = axis_of(points), images.val.some(MOST_SCORED)
    return Seen(top1, axis, losses_around(training.model, scored, axis, seed))


def roughness(losses: Any) -> float:
    """Of the way that the loss goes along a line of the grid, the share that is there and back.

    The mean over all lines, along both directions. A line that falls to its lowest point and rises
    after it has 0.
    """
    shares = []
    for line in (*losses, *losses.T):
        way = float(np.abs(np.diff(line)).sum())
        straight = float(line[0] + line[-1] - 2 * line.min())
        shares.append((way - straight) / way if way else 0.0)
    return statistics.mean(shares)


def draw(found: dict[str, list[Seen]], to: Path) -> None:
    """The landscapes of the first seed beside each other."""
    from vitnas.diagnose import draw as figures
    from vitnas.diagnose.landscape import contours

    note = "A direction is as long as the weights at 1, filter by filter"
    figure = figures.new_figure("Loss around stacks of 108 layers", note, 12.0, 4.2)
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, (name, seen) in zip(panels, found.items(), strict=True):
        first = seen[0]
        contours(figure, axes, first.axis, first.losses, min(first.losses.max(), 6.0))
        axes.set_title(name, loc="left", fontsize=10)
    to.write_bytes(figures.png(figure))


def main() -> None:
    from vitnas.diagnose.landscape import reach

    parser = quick_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--to", type=Path, help="PNG file of the first seed's landscapes")
    given = parser.parse_args()
    seeds, *sizes = (1, 1, 0.003, 3) if given.quick else (given.seeds, 12, 0.03, 11)
    names = list(STACKS)[:2] if given.quick else list(STACKS)
    found: dict[str, list[Seen]] = {name: [] for name in names}
    for seed in range(seeds):
        for name in names:
            seen = trained(name, seed, *sizes)
            found[name].append(seen)
            print(name, seed, seen.top1, seen.losses.round(2).tolist(), file=sys.stderr, flush=True)
    if given.to is not None:
        draw(found, given.to)
    rows = []
    figures: dict[str, float] = {}
    for name, each in found.items():
        columns = {
            "top1": [seen.top1 for seen in each],
            "loss": [seen.centre for seen in each],
            "reach": [reach(seen.losses, seen.axis) for seen in each],
            "rough": [roughness(seen.losses) for seen in each],
        }
        rows.append((name, *(spread(column) for column in columns.values())))
        figures |= {f"{name}: {key}": rounded(statistics.mean(it)) for key, it in columns.items()}
    show((f"{sizes[0]} epochs, {seeds} seeds", "top-1, %", "loss", "reach", "rough"), rows)
    more = figures["DeiT-108: rough"] - figures[f"{names[-1]}: rough"]
    results: Figures = {**figures, "deit_rougher": rounded(more)}
    targets: dict[str, Bound] = {"deit_rougher": {"min": 0.0}}  # as the paper says
    conclude("landscapes", given.quick, results, targets)


def spread(values: list[float]) -> str:
    """Mean and standard deviation over seeds."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} +- {deviation:.2f}"


if __name__ == "__main__":
    main()
