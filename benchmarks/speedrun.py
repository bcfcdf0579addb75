"""Seconds to a stated top-1 on Fashion-MNIST at 32 px, by networks that a search found.

Two races, in the manner of airbench: train on all 60,000 images from nothing, score once on the
10,000 of test, and name n, mean, deviation and hardware. The networks are of the front of
`vitnas search fashion_32 --trials 60 --seed 0`; epochs and rates were chosen on images held out of
the training images. A race is won where the mean top-1 over the seeds reaches its mark.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, NamedTuple

from by_hand import conv
from by_hand import network as stages_of
from common import Bound, Figures, conclude, quick_parser, rounded, show


class Race(NamedTuple):
    """A mark and what runs to it: widths of three stages of `mbconv`, and the recipe."""

    mark: float
    widths: tuple[int, int, int]
    kernel: int
    recipe: dict[str, Any]


RECIPE = {"batch_size": 128, "optimizer": "muon", "warmup_epochs": 0.5, "label_smoothing": 0.1}
RACES = {
    "91": Race(91.0, (32, 64, 48), 5, RECIPE | {"epochs": 4, "lr": 2.4e-2}),
    "93": Race(
        93.0, (48, 96, 128), 3, RECIPE | {"epochs": 12, "lr": 1.6e-2, "augment": "shift_flip"}
    ),
}


def network(race: Race) -> dict[str, Any]:
    """Stages of depthwise-separable convolutions with residual connections; a kernel for the
    second."""
    first, second, third = race.widths
    return stages_of(conv(first), conv(second, kernel_size=race.kernel), conv(third))


def run(race: Race, images: Any, seed: int, device: str) -> tuple[float, float]:
    """Top-1 in percent on the scoring images, and seconds from the first step to the last one."""
    import torch

    from vitnas.config.model import ModelConfig
    from vitnas.config.training import ProxyConfig
    from vitnas.nn.model import build_model
    from vitnas.training.proxy import Training, evaluate

    torch.manual_seed(seed)
    proxy = ProxyConfig.model_validate(race.recipe)
    model = build_model(ModelConfig.model_validate(network(race)))
    training = Training(model, proxy, images, seed=seed, device=device)
    began = time.perf_counter()
    for _ in training:
        pass
    seconds = time.perf_counter() - began
    return evaluate(training.model, images.val), seconds


def images_of(quick: bool, held_out: bool) -> Any:
    """Fashion-MNIST; digits for a quick run."""
    from vitnas.config.data import DataConfig
    from vitnas.training.data import load_data

    whole = {"val_split": "test", "val_fraction": 0.0}
    split: dict[str, Any] = {"val_fraction": 0.1} if held_out else whole
    data = {} if quick else {"name": "fashion_mnist", **split}
    return load_data(DataConfig.model_validate(data), 32)


def raced(race: Race, images: Any, seeds: int, device: str) -> tuple[list[float], list[float]]:
    """Top-1 and seconds of each seed."""
    found = [run(race, images, seed, device) for seed in range(seeds)]
    return [top1 for top1, _ in found], [seconds for _, seconds in found]


def deviation(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("--race", choices=sorted(RACES), action="append", help="repeatable")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--held-out", action="store_true", help="a tenth of train scores, not test")
    options = parser.parse_args()
    import torch

    from vitnas.config.model import ModelConfig
    from vitnas.cost.closed_form import closed_form

    torch.set_num_threads(1)
    images = images_of(options.quick, options.held_out)
    rows, figures, targets = [], dict[str, float](), dict[str, Bound]()
    for name in options.race or sorted(RACES):
        race = RACES[name]
        if options.quick:
            race = race._replace(recipe=race.recipe | {"epochs": 1})
        top1, seconds = raced(race, images, 1 if options.quick else options.seeds, options.device)
        cost = closed_form(ModelConfig.model_validate(network(race)))
        figures[f"top1_{name}"] = round(statistics.fmean(top1), 2)
        figures[f"seconds_{name}"] = rounded(statistics.fmean(seconds))
        targets[f"top1_{name}"] = {"min": 0.0 if options.quick else race.mark}
        rows.append((
            name, f"{cost.flops / 1e6:.2f} M", f"{cost.num_params / 1e3:.1f} k", str(len(top1)),
            f"{statistics.fmean(top1):.2f} +- {deviation(top1):.2f}",
            f"{statistics.fmean(seconds):.1f} +- {deviation(seconds):.1f}",
        ))  # fmt: skip
    show(("race", "FLOPs", "parameters", "n", "top-1, %", "seconds"), rows)
    shown: Figures = figures
    conclude("speedrun", options.quick, shown, targets)


if __name__ == "__main__":
    main()
