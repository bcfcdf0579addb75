"""What it is worth that BatchNorm's statistics are measured anew before a network is scored.

The first random networks of a space, and `vgg`, are trained by the space's recipe, one seed each.
After each epoch each is scored twice, with the same weights: with PyTorch's running statistics, and
with measured ones (`measure_statistics`). The table has the mean top-1 on the scoring images, and
how well the order of the networks agrees with the order after the last epoch by the measured
statistics: Kendall's tau. A score that is not finite counts as 0 %. `scenes` are those of digits of
`folder.py`, `fashion` is `fashion_32`. A quick run trains three networks for the digits, for three
epochs.
"""

from __future__ import annotations

import copy
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from by_hand import builder
from common import (
    Bound,
    Figures,
    conclude,
    draw_configs,
    folder_in_memory,
    quick_parser,
    rounded,
    show,
)
from folder import SIDE, write_images

from vitnas.calibration.agreement import kendall_tau
from vitnas.config.space import SearchSpace, load_space
from vitnas.training.data import load_data
from vitnas.training.images import Images
from vitnas.training.proxy import Training
from vitnas.training.score import Diverged, evaluate

SPACES = {"digits": ("digits", 8), "fashion": ("fashion_32", 32), "scenes": ("images_64", SIDE)}
"""File and side of the images, by data set."""
VGG = {"digits": 12, "fashion": 24, "scenes": 16}
"""The baseline's width."""


class Both(Training):
    """A training that goes on with the running statistics, and keeps the scores that they give."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.running: list[float] = []
        self.measuring = self.comparing = 0.0  # processor time in seconds
        self._kept: dict[str, Any] = {}

    def _train_epoch(self, epoch: int) -> float:
        if self._kept:
            self.model.load_state_dict(self._kept)
        return super()._train_epoch(epoch)

    def _measure_statistics(self, epoch: int) -> None:
        started = time.process_time()
        self._kept = copy.deepcopy(self.model.state_dict())
        self.running.append(0.0)
        with suppress(Diverged):
            self.running[-1] = evaluate(self.model, self.images.val)
        compared = time.process_time()
        super()._measure_statistics(epoch)
        self.comparing += compared - started
        self.measuring += time.process_time() - compared


def images_of(name: str, space: SearchSpace, folder: Path, quick: bool) -> Images:
    """The space's own, or scenes that are written first."""
    data, side = space.config.data, SPACES[name][1]
    if name == "scenes":
        write_images(folder / "images", quick, "digits")
        data = data.model_copy(update={"root": str(folder / "images")})
    return load_data(data, side, space.config.proxy.train_fraction)


def curves(name: str, number: int, quick: bool) -> tuple[Any, float]:
    """Top-1 (networks, 2, epochs): by running statistics, then by measured ones; and what measuring
    them adds to the processor time of a training."""
    space = load_space(SPACES[name][0])
    proxy = space.config.proxy.for_epochs(3) if quick else space.config.proxy
    configs = draw_configs(space, number)
    given: list[Any] = [one.model_dump(mode="json", exclude_unset=True) for one in configs]
    found, measuring, without = [], 0.0, 0.0
    with folder_in_memory() as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        images = images_of(name, space, Path(folder), quick)
        for seed, one in enumerate([("vgg", VGG[name]), *given]):
            torch.manual_seed(seed)
            training = Both(builder(one, images)(), proxy, images, seed)
            started = time.process_time()
            measured = [result.top1 for result in training]
            spent = time.process_time() - started - training.comparing
            measuring += training.measuring
            without += spent - training.measuring
            found.append((training.running, measured))
            print(f"{name}: {training.running[-1]:.2f}, {measured[-1]:.2f} %", flush=True)
    return np.array(found), measuring / without


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("--data", choices=sorted(SPACES), action="append", help="repeatable")
    parser.add_argument("--networks", type=int, default=8, help="random ones, beside `vgg`")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    figures: Figures = {}
    names = asked.data or (["digits"] if asked.quick else list(SPACES))
    for name in names:
        found, share = curves(name, 2 if asked.quick else asked.networks, asked.quick)
        means, last = found.mean(axis=0), found[:, 1, -1]
        rows = []
        for epoch in range(found.shape[2]):
            taus = [kendall_tau(found[:, way, epoch], last) or 0.0 for way in (0, 1)]
            cells = [*(f"{one:.2f}" for one in means[:, epoch]), *(f"{one:.2f}" for one in taus)]
            rows.append((str(epoch + 1), *cells))
        show(("epoch", "top-1, running", "measured", "tau, running", "measured"), rows)
        gains = found[:, 1] - found[:, 0]
        figures[f"{name}: gain after epoch 2"] = rounded(float(gains[:, 1].mean()))
        figures[f"{name}: gain after the last epoch"] = rounded(float(gains[:, -1].mean()))
        figures[f"{name}: the same, vgg"] = rounded(float(gains[0, -1]))
        figures[f"{name}: share of the time"] = rounded(share)
    bounds: dict[str, Bound] = {name: {"min": 0.0} for name in figures if "epoch 2" in name}
    conclude("batch_norm", asked.quick, figures, bounds)


if __name__ == "__main__":
    main()
