"""Seconds to a stated top-1 on Fashion-MNIST at 32 px, by networks that a search found.

Three races, in the manner of airbench: train on all 60,000 images from nothing, score once on the
10,000 of test, and name n, mean, deviation and hardware. A race is won where the mean top-1 over
the seeds reaches its mark. The first network is of the front of `vitnas search fashion_32 --trials
60 --seed 0`, the others, hybrids, of that of `benchmarks/fashion_32_full.yaml`. Beside each of
these runs the best baseline of a little more FLOPs, which no mark is for. Epochs and rate of the
first race were chosen on images held out of the training images; the recipe of the others was
written by hand for the second race, with test scores of two earlier trainings in view.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, NamedTuple

import yaml
from by_hand import Given, builder, conv, network
from common import ROOT, Bound, Figures, conclude, quick_parser, rounded, show


class Race(NamedTuple):
    """A mark in percent, or None, and what runs to it: a network and its recipe."""

    mark: float | None
    runner: Given
    recipe: dict[str, Any]


def from_file(name: str) -> dict[str, Any]:
    """A file of this folder."""
    tree: dict[str, Any] = yaml.safe_load((ROOT / "benchmarks" / name).read_text())
    return tree


LONG = from_file("speedrun_93_recipe.yaml")
SHORT = {"epochs": 4, "batch_size": 128, "optimizer": "muon", "lr": 2.4e-2, "warmup_epochs": 0.5}
RACES = {
    "91": Race(91.0, network(conv(32), conv(64, kernel_size=5), conv(48)), SHORT),
    "93": Race(93.0, from_file("speedrun_93.yaml"), LONG),
    "93_vgg": Race(None, ("vgg", 24), LONG),
    "94": Race(94.0, from_file("speedrun_94.yaml"), LONG),
    "94_vgg": Race(None, ("vgg", 29), LONG),
}


def run(race: Race, images: Any, seed: int, device: str) -> tuple[float, float]:
    """Top-1 in percent on the scoring images, and seconds from the first step to the last one."""
    import torch

    from vitnas.config.training import ProxyConfig
    from vitnas.training.proxy import Training
    from vitnas.training.score import evaluate

    torch.manual_seed(1000 + seed)  # as in by_hand.py
    proxy = ProxyConfig.model_validate(race.recipe)
    training = Training(builder(race.runner, images)(), proxy, images, seed=seed, device=device)
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


def raced(race: Race, images: Any, seeds: range, device: str) -> tuple[list[float], list[float]]:
    """Top-1 and seconds of each seed."""
    found = [run(race, images, seed, device) for seed in seeds]
    return [top1 for top1, _ in found], [seconds for _, seconds in found]


def size_of(race: Race, images: Any) -> tuple[int, int]:
    """FLOPs of an image, and parameters."""
    from vitnas.cost.operators import count_flops

    model = builder(race.runner, images)()
    number = sum(parameter.numel() for parameter in model.parameters())
    return count_flops(model, (images.in_chans, *images.image_hw)), number


def deviation(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("--race", choices=sorted(RACES), action="append", help="repeatable")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, help="in place of the recipe's")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--held-out", action="store_true", help="a tenth of train scores, not test")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    images = images_of(options.quick, options.held_out)
    rows, figures, targets = [], dict[str, float](), dict[str, Bound]()
    for name in options.race or sorted(RACES):
        race = RACES[name]
        if epochs := 1 if options.quick else options.epochs:
            race = race._replace(recipe=race.recipe | {"epochs": epochs})
        last = options.first_seed + (1 if options.quick else options.seeds)
        seeds = range(options.first_seed, last)
        top1, seconds = raced(race, images, seeds, options.device)
        flops, parameters = size_of(race, images)
        figures[f"top1_{name}"] = round(statistics.fmean(top1), 2)
        figures[f"seconds_{name}"] = rounded(statistics.fmean(seconds))
        if race.mark is not None:
            targets[f"top1_{name}"] = {"min": 0.0 if options.quick else race.mark}
        rows.append((
            name, f"{flops / 1e6:.2f} M", f"{parameters / 1e3:.1f} k", str(len(top1)),
            f"{statistics.fmean(top1):.2f} +- {deviation(top1):.2f}",
            f"{statistics.fmean(seconds):.1f} +- {deviation(seconds):.1f}",
        ))  # fmt: skip
    show(("race", "FLOPs", "parameters", "n", "top-1, %", "seconds"), rows)
    shown: Figures = figures
    conclude("speedrun", options.quick, shown, targets)


if __name__ == "__main__":
    main()
