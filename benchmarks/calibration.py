"""Judging proxies: time of a calibration's taus, taus of recorded and of other people's trainings.

The time is that of 20 scores of 40 networks, resamples included. Of the tables that come with
vitnas, sizes and earlier epochs are judged by the last epoch, of one seed: an earlier epoch shares
its noise with the last one, so its tau is too high. The other people's trainings are
Accel-NASBench's ablation of proxies on ImageNet: 3 short and 3 long seeds
(`shared/tables/accel_seeds/*.csv` beside the checkout; left out where they are not there). The
files number their networks in column 2, but several networks have the same number: the 90 numbers
stand for 117 networks, which their axes tell apart. Both ways of matching are printed.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from common import ROOT, conclude, is_quick, median_seconds, show

from vitnas.calibration.agreement import Array, Judged, Networks
from vitnas.cost.closed_form import closed_form
from vitnas.replay.tables import find_table

FILES = [(kind, seed) for kind in ("short", "long") for seed in (1, 2, 3)]
MATCHES = {"index": slice(2, 3), "axes": slice(9, None)}
TARGETS = {
    "short_overall": 0.904,
    "short_within": 0.891,
    "long_overall": 0.958,
    "long_within": 0.945,
    "flops_overall": 0.514,
    "flops_within": 0.167,
    "params_overall": 0.699,
    "params_within": 0.635,
}


def judge_seconds(repeats: int) -> float:
    draw = np.random.default_rng(0)
    flops, truth = np.geomspace(1e5, 1e7, 40), draw.normal(size=40)
    scores = draw.normal(size=(20, 40))

    def judge() -> None:
        networks = Networks(flops)
        for score in scores:
            networks.judge([(score, truth)])

    return median_seconds(judge, repeats)


def read(folder: Path, match: slice) -> list[list[list[str]]]:
    """The rows of the networks that all files have: [file][network][column]."""
    found = []
    for kind, seed in FILES:
        with (folder / f"{kind}_seed{seed}.csv").open() as lines:
            found.append({tuple(row[match]): row for row in csv.reader(lines)})
    common = sorted(set.intersection(*map(set, found)))
    return [[rows[key] for key in common] for rows in found]


def published(folder: Path, match: str) -> dict[str, float]:
    """Taus of one short seed, one long seed, multiply-adds and parameters."""
    rows = read(folder, MATCHES[match])
    top1 = np.array([[float(row[4]) for row in file] for file in rows])
    flops, params = (np.array([float(row[column]) for row in rows[0]]) for column in (6, 7))
    networks, truth = Networks(flops), top1[3:].mean(axis=0)
    judged = {
        "short": networks.judge([(top1[0], truth)]),
        "long": networks.judge([(top1[3], top1[4:].mean(axis=0))]),
        "flops": networks.judge([(flops, truth)]),
        "params": networks.judge([(params, truth)]),
    }
    return figures_of(f"{len(flops)} networks, matched by {match}", judged)


def recorded(name: str) -> dict[str, float]:
    """Taus of sizes and earlier epochs to the last epoch of a table that comes with vitnas."""
    table = find_table(name)
    flops = np.array([network.proposal.flops for network in table.complete])
    params = np.array([closed_form(network.config).num_params for network in table.complete])
    curves = np.array([network.trainings[0].curve for network in table.complete])
    scores: dict[str, Array] = {f"{name}_flops": flops, f"{name}_params": params}
    scores |= {f"{name}_epoch_{epoch}": curves[:, epoch - 1] for epoch in (1, 2, 5)}
    networks = Networks(flops)
    judged = {key: networks.judge([(score, curves[:, -1])]) for key, score in scores.items()}
    return figures_of(f"{len(flops)} recorded networks of {name}", judged)


def figures_of(title: str, judged: dict[str, Judged]) -> dict[str, float]:
    """Print taus, and name them."""
    print(f"\n{title}: tau (95 % interval)")
    rows = [
        (name, *(f"{t.value:.3f} ({t.low:.2f} to {t.high:.2f})" for t in (one.overall, one.within)))
        for name, one in judged.items()
    ]
    show(("", "overall", "within quartiles of multiply-adds"), rows)
    return {
        f"{name}_{part}": round(getattr(one, part).value, 3)
        for name, one in judged.items()
        for part in ("overall", "within")
    }


def main() -> None:
    quick = is_quick(__doc__)
    seconds = judge_seconds(1 if quick else 5)
    print(f"20 scores of 40 networks judged in {seconds:.2f} s")
    figures, targets = {"judge_s": round(seconds, 3)}, {"judge_s": {"max": 5.0}}
    for name in ("digits",) if quick else ("digits", "fashion_32"):
        figures |= recorded(name)
    places = [root / "shared" / "tables" / "accel_seeds" for root in ROOT.parents]
    folder = next(filter(Path.is_dir, places), None)
    if folder is None:
        print("shared/tables/accel_seeds is not here: no taus of published trainings")
    else:
        figures |= published(folder, "index")
        targets |= {name: {"min": value, "max": value} for name, value in TARGETS.items()}
        figures |= {f"{name}_by_axes": v for name, v in published(folder, "axes").items()}
    conclude("calibration", quick, figures, targets)


if __name__ == "__main__":
    main()
