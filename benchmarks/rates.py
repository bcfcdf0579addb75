"""How far one rate for all networks is from each network's own best, for several optimizers.

Networks of a space, evenly over log FLOPs and mixers, are trained at seven rates, each twice as
high as the last, with the space's other settings. Every training is kept in a file, so the command
resumes, and other ways of training can be added.

For each way: its best rate for all, what the networks lose there against their own best rates
(mean and worst, in points of top-1), and Kendall's tau between the order at that rate and the
order "each at its own best", overall and within bins of FLOPs. A best of seven is partly luck, so
these losses are upper bounds: with two seeds each network's own rate is chosen on one and scored on
the other.

AdamW and Muon are those of vitnas. Two others are here alone: `mup`, AdamW whose matrices have a
rate of 64 / fan-in (Yang et al., "Tensor Programs V", 2022, Table 3), and `prodigy` (package
prodigyopt; Mishchenko and Defazio, 2023), which estimates its rate and is given 1 alone: at half of
it, short trainings do not start.

With `--baselines`, the networks are not the space's but one of each family of baselines, near the
middle of its log FLOPs: does the rate of the space suit those that it is compared with? With
`--recorded`, they are those of the space's recorded table, in its order.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import (
    ROOT,
    Bound,
    Figures,
    conclude,
    draw_configs,
    folder_in_memory,
    quick_parser,
    rounded,
    show,
)

from vitnas.baselines.families import FAMILIES
from vitnas.baselines.sizes import NUM_SIZES, line_up, targets
from vitnas.calibration.agreement import Networks
from vitnas.config.baseline import Baseline
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space
from vitnas.cost.closed_form import closed_form
from vitnas.cost.survey import flops_range
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.request import Request
from vitnas.exported.design import size_of_design
from vitnas.replay.tables import find_table
from vitnas.seeds import derive_seed
from vitnas.training import optim

RATES = tuple(1e-3 * 2**step for step in range(7))
WAYS: dict[str, dict[str, Any]] = {
    "adamw": {"optimizer": "adamw"},
    "muon": {"optimizer": "muon"},
    "mup": {"optimizer": "adamw"},
    "prodigy": {"optimizer": "adamw"},
}
Subject = ModelConfig | Baseline
Table = np.ndarray[Any, np.dtype[np.float64]]
"""Top-1 by seed, network and rate; NaN where a training diverged."""


def space_parser(description: str | None) -> argparse.ArgumentParser:
    """What reads `--quick`, `--space` and `--root`, and what is added to it; see `the_space`."""
    parser = quick_parser(description)
    parser.add_argument("--space", default="digits", help="a shipped space, or a file")
    parser.add_argument("--root", help="folder of the images, where it is not the usual one")
    return parser


def arguments() -> argparse.Namespace:
    parser = space_parser(__doc__)
    parser.add_argument("--networks", type=int, default=12)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--baselines", action="store_true", help="their families' networks instead"
    )
    instead.add_argument("--recorded", action="store_true", help="those of the table instead")
    parser.add_argument("--take", type=int, nargs="*", help="only these of them, from 0")
    parser.add_argument("--rates", type=float, nargs="*", default=RATES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=["adamw", "muon"])
    parser.add_argument("--into", type=Path, default=ROOT / "results" / "rates")
    given = parser.parse_args()
    if len(given.take or range(given.networks)) < 2:
        parser.error("two networks at least are compared")
    if "prodigy" in given.ways and importlib.util.find_spec("prodigyopt") is None:
        parser.error("--ways prodigy needs a package: pip install prodigyopt")
    return given


def spread(space: SearchSpace, number: int) -> list[ModelConfig]:
    """So many networks, one in each equal part of log FLOPs, the mixers as evenly as can be."""
    configs = {config.key: config for config in draw_configs(space, 40 * number)}
    sizes = {key: math.log(closed_form(config).flops) for key, config in configs.items()}
    ends = np.linspace(min(sizes.values()), max(sizes.values()), number + 1)
    used: Counter[tuple[int, str]] = Counter()
    chosen = []
    for low, high in pairwise(ends):
        inside = [configs[key] for key, size in sizes.items() if low <= size <= high]
        if inside:
            best = min(inside, key=lambda one: (sum(used[it] for it in mixers(one)), one.key))
            used.update(mixers(best))
            chosen.append(best)
    return chosen


def families(space: SearchSpace) -> Iterator[Baseline]:
    """Of each family of baselines the member whose size is the third of four."""
    goal = targets(*flops_range(space))[2]
    members = line_up(space, len(FAMILIES) * NUM_SIZES).members
    for family in FAMILIES:
        own = [one for one in members if one.baseline.family == family]
        if own:
            yield min(own, key=lambda one: abs(math.log(one.flops / goal))).baseline


def words(subject: Subject) -> list[str]:
    """What a row of the table calls it."""
    if isinstance(subject, Baseline):
        return [subject.name]
    return [mixer for _, mixer in mixers(subject)]


def mixers(config: ModelConfig) -> list[tuple[int, str]]:
    """The mixer of each stage; of one with a pattern, all of them."""
    return [(index, "+".join(stage.kinds)) for index, stage in enumerate(config.stages)]


def measure(
    space: SearchSpace,
    configs: Sequence[Subject],
    way: str,
    rates: Sequence[float],
    seeds: int,
    book: Book,
) -> Table:
    """The trainings of a way that are not in the book yet, and what all of them gave."""
    proxies = [
        type(space.config.proxy).model_validate(
            {**space.config.proxy.model_dump(), **WAYS[way], "lr": rate}
        )
        for rate in rates
    ]
    requests = {
        (seed, index, rate): Request(config, proxy, derive_seed(seed, config.key))
        for seed in range(seeds)
        for rate, proxy in enumerate(proxies)
        for index, config in enumerate(configs)
    }
    missing = book.missing(requests.values())
    if missing:
        backend = SerialBackend(gpus=0)
        backend.prepare(space)
        with stepping(way):
            for number, (request, answer) in enumerate(backend.answers(missing), start=1):
                book.put(request, answer)
                told = f"{answer.top1} in {answer.seconds:.1f} s"
                print(f"{way} {number}/{len(missing)}: {told}", flush=True)
    table = np.full((seeds, len(configs), len(rates)), math.nan)
    for place, request in requests.items():
        known = book.get(request)
        if known is not None and known.top1 is not None:
            table[place] = known.top1
    return table


@contextmanager
def stepping(way: str) -> Iterator[None]:
    """Let vitnas's AdamW be the optimizer of a way that is here alone."""
    kinds = optim.OPTIMIZERS
    before = kinds["adamw"]
    kinds["adamw"] = {"mup": mup, "prodigy": prodigy}.get(way, before)
    try:
        yield
    finally:
        kinds["adamw"] = before


def mup(groups: list[dict[str, Any]], lr: float) -> torch.optim.Optimizer:
    """AdamW; the rate of a matrix falls with its fan-in."""
    parts = [
        {**group, "params": [one], "lr_scale": 64 / one[0].numel() if optim.is_matrix(one) else 1.0}
        for group in groups
        for one in group["params"]
    ]
    return torch.optim.AdamW(parts, lr=lr, fused=True)


def prodigy(groups: list[dict[str, Any]], lr: float) -> torch.optim.Optimizer:
    """Prodigy with the corrections that its authors advise for a schedule with a warm-up."""
    from prodigyopt import Prodigy

    optimizer: torch.optim.Optimizer = Prodigy(
        groups, lr=lr, decouple=True, use_bias_correction=True, safeguard_warmup=True
    )
    return optimizer


def own_best(table: Table) -> tuple[Table, Table]:
    """The top-1 of each network at its own best rate, and which rate that is.

    With two seeds or more, the rate of each seed is the best one of the others.
    """
    filled = np.nan_to_num(table, nan=0.0)
    together = filled.mean(axis=0).argmax(axis=1)
    if len(filled) == 1:
        return filled[0].max(axis=1), together
    others = (filled.sum(axis=0) - filled) / (len(filled) - 1)
    chosen = np.take_along_axis(filled, others.argmax(axis=2)[..., None], axis=2)[..., 0]
    return chosen.mean(axis=0), together


def judge(
    way: str, table: Table, rates: Sequence[float], flops: Sequence[float]
) -> dict[str, float]:
    """What one rate for all costs."""
    if len(rates) == 1:  # no rate to choose, so nothing to lose by the choice
        return {f"{way}: top-1": rounded(float(np.nan_to_num(table, nan=0.0).mean()), 4)}
    best, _ = own_best(table)
    mean = np.nan_to_num(table, nan=0.0).mean(axis=0)
    rate = int(mean.mean(axis=0).argmax())
    losses = best - mean[:, rate]
    networks = Networks(flops)
    taus = networks.judge([(mean[:, rate], best)])
    again = {}
    if len(table) > 1:  # two trainings at one rate agree no more than this
        one, other, *_ = np.nan_to_num(table, nan=0.0)[:, :, rate]
        ceiling = networks.judge([(one, other)])
        again = {f"{way}: tau of two seeds within bins": rounded(ceiling.within.value)}
    return {
        f"{way}: rate": rates[rate],
        f"{way}: top-1 there": rounded(float(mean[:, rate].mean()), 4),
        f"{way}: top-1 at own best": rounded(float(best.mean()), 4),
        f"{way}: mean loss": rounded(float(losses.mean())),
        f"{way}: worst loss": rounded(float(losses.max())),
        f"{way}: tau": rounded(taus.overall.value),
        f"{way}: tau within bins": rounded(taus.within.value),
        **again,
    }


def print_table(way: str, table: Table, rates: Sequence[float], configs: Sequence[Subject]) -> None:
    """Top-1 by network and rate."""
    mean, (best, chosen) = table.mean(axis=0), own_best(table)
    rows = [
        (
            " ".join([f"{size_of_design(config).flops / 1e3:,.0f} k", *words(config)]),
            *(f"{value:.2f}" for value in mean[index]),
            f"{best[index]:.2f} at {rates[chosen[index]]:g}",
        )
        for index, config in enumerate(configs)
    ]
    rows.append(("mean", *(f"{value:.2f}" for value in mean.mean(axis=0)), f"{best.mean():.2f}"))
    print()
    show((way, *(f"{rate:g}" for rate in rates), "own best"), rows)


def the_space(given: argparse.Namespace) -> SearchSpace:
    """The space, with its images where `--root` says; in a quick run for one epoch."""
    config = load_space(given.space).config
    proxy = config.proxy.model_copy(update={"epochs": 1} if given.quick else {})
    data = config.data.model_copy(update={"root": given.root} if given.root else {})
    return SearchSpace(config.model_copy(update={"proxy": proxy, "data": data}), given.space)


def main() -> None:
    given = arguments()
    space = the_space(given)
    configs: list[Subject] = [*spread(space, 2 if given.quick else given.networks)]
    if given.baselines:
        configs = list(families(space))[: 2 if given.quick else None]
    if given.recorded:
        configs = [network.config for network in find_table(given.space).networks]
        configs = configs if given.take else configs[: 2 if given.quick else given.networks]
    configs = [configs[index] for index in given.take] if given.take else configs
    flops = [size_of_design(each).flops for each in configs]
    figures: dict[str, float | str | list[str]] = {"space": space.name, "networks": len(configs)}
    with folder_in_memory() as scratch:
        folder = Path(scratch) if given.quick else given.into
        for way in given.ways:
            file = f"{space.name}-{way}" if way in ("mup", "prodigy") else space.name
            file += "-baselines" * given.baselines
            book = Book(folder / f"{file}.jsonl", space.config.data.name)
            rates = (1.0,) if way == "prodigy" else given.rates
            table = measure(space, configs, way, rates, given.seeds, book)
            print_table(way, table, rates, configs)
            figures |= judge(way, table, rates, flops)
    print()
    show(("", ""), [(name, f"{value}") for name, value in figures.items()])
    last = given.ways[-1]
    targets: dict[str, Bound] = {
        f"{last}: mean loss": {"max": 0.5},
        f"{last}: worst loss": {"max": 1.5},
        f"{last}: tau within bins": {"min": 0.8},
    }
    results: Figures = figures
    measured = {name: bound for name, bound in targets.items() if name in figures}
    conclude("rates", given.quick, results, measured)


if __name__ == "__main__":
    main()
