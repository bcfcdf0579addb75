"""What each field of the short recipe is worth, on articles at 32 px and on scenes at 64 px.

Four networks are trained: a tutorial's CNN (`vgg`), inverted residuals, attention in the last
stage, static keys in the middle. Each change of the space's recipe is worth its test score less
that of the recipe itself, on the same network with the same seed; the mean over networks and
seeds. The interval is Student's t, of 95 %, over the networks' means where they scatter more than
seeds do, else over seeds. `--only fashion` or `--only scenes` takes one set of images,
`--only-changes` some changes, and `--epochs` is for scenes, whose recipe augments all epochs here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from blocks import ATTENTION, SIDE, pictures, plain, stage
from by_hand import Given, Tried, tried
from by_hand_folder import EPOCHS
from common import Bound, conclude, quick_parser, rounded, show

SEEDS = 2
WIDTHS = (12, 24, 48)


class Worth(NamedTuple):
    """Points of a change on all networks, half of the interval, and those on each network."""

    points: float
    half: float
    each: list[float]


def networks(side: int) -> dict[str, Given]:
    """By name."""
    base = plain(WIDTHS, side)
    return {
        "vgg": ("vgg", 6),
        "mbconv": base,
        "mhsa last": stage(base, -1, token_mixer="mhsa", **ATTENTION),
        "ska in the middle": stage(base, 1, token_mixer="ska", **ATTENTION),
    }


def changes(proxy: Any) -> dict[str, dict[str, Any]]:
    """Every change of the recipe, by its name."""
    batch = proxy.batch_size
    return {
        "half of the rate": {"lr": proxy.lr / 2},
        "twice the rate": {"lr": proxy.lr * 2},
        "no weight decay": {"weight_decay": 0.0},
        "weight decay 0.2": {"weight_decay": 0.2},
        "no warm-up": {"warmup_epochs": 0.0},
        "warm-up 2 epochs": {"warmup_epochs": 2.0},
        "no smoothing": {"label_smoothing": 0.0},
        "smoothing 0.2": {"label_smoothing": 0.2},
        "half of the batch": {"batch_size": batch // 2},
        "half of the batch, 0.7 of the rate": {"batch_size": batch // 2, "lr": proxy.lr / 2**0.5},
        "twice the batch": {"batch_size": batch * 2},
        "no clipping": {"grad_clip": 0.0},
        "augment none": {"augment": "none"},
        "augment shift": {"augment": "shift"},
        "augment shift_flip": {"augment": "shift_flip"},
        "augment crop_flip": {"augment": "crop_flip"},
        "last third not augmented": {"no_augment_epochs": proxy.epochs // 3},
        "moving average 0.99": {"ema_decay": 0.99},
        "moving average 0.9": {"ema_decay": 0.9},
        "adamw, a quarter of the rate": {"optimizer": "adamw", "lr": proxy.lr / 4},
    }


def worth(base: Mapping[str, Tried], changed: Mapping[str, Tried]) -> Worth:
    """The change against the recipe, network by network and seed by seed."""
    from scipy import stats

    pairs = [
        [b - a for a, b in zip(base[name].top1, changed[name].top1, strict=True)] for name in base
    ]
    means = [statistics.fmean(each) for each in pairs]
    points = statistics.fmean(means)
    if len(pairs[0]) < 2:
        return Worth(points, math.nan, means)
    freedom = sum(len(each) - 1 for each in pairs)
    within = sum((d - m) ** 2 for each, m in zip(pairs, means, strict=True) for d in each) / freedom
    by_seeds = math.sqrt(within / len(pairs) / len(pairs[0]))
    by_networks = statistics.stdev(means) / math.sqrt(len(means))
    half = max(
        float(stats.t.ppf(0.975, freedom)) * by_seeds,
        float(stats.t.ppf(0.975, len(means) - 1)) * by_networks,
    )
    return Worth(points, half, means)


def measure(which: str, quick: bool, chosen: Sequence[str], epochs: int) -> dict[str, Worth]:
    """Train the networks by the recipe and by its changes, and print what each is worth."""
    import torch

    torch.set_num_threads(1)
    models = networks(32 if which == "fashion" else SIDE)
    seeds = range(1 if quick else SEEDS)

    with pictures(which, quick, epochs) as (images, proxy):

        def trained(name: str, more: Mapping[str, Any]) -> dict[str, Tried]:
            recipe = type(proxy).model_validate(proxy.model_dump() | more)
            found = {key: tried(given, seeds, images, recipe) for key, given in models.items()}
            scores = ", ".join(f"{one.mean:.2f}" for one in found.values())
            print(f"{which}, {name}: {scores} %", flush=True)
            return found

        base = trained("the recipe", {})
        given = changes(proxy)
        results = {name: worth(base, trained(name, given[name])) for name in chosen or given}
    rows = [
        (name, f"{one.points:+.2f}", f"{one.half:.2f}", *(f"{points:+.2f}" for points in one.each))
        for name, one in sorted(results.items(), key=lambda pair: -pair[1].points)
    ]
    print()
    show((which, "points", "+-", *models), rows)
    print()
    return results


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("--only", choices=("fashion", "scenes"), help="one set of images")
    parser.add_argument("--only-changes", nargs="*", default=[], help="only these")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of a training on scenes")
    given = parser.parse_args()
    kinds = [given.only] if given.only else ["scenes"] if given.quick else ["fashion", "scenes"]
    chosen = given.only_changes or (["no warm-up"] if given.quick else [])
    found = {which: measure(which, given.quick, chosen, given.epochs) for which in kinds}
    figures = {
        f"{which}: {name}": rounded(one.points)
        for which, results in found.items()
        for name, one in results.items()
    }
    figures["changes"] = float(sum(len(results) for results in found.values()))
    targets: dict[str, Bound] = {"changes": {"min": 1}}
    conclude("recipe", given.quick, figures, targets)


if __name__ == "__main__":
    main()
