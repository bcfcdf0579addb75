"""What each block of the space buys at like FLOPs, on articles at 32 px and scenes at 64 px.

The plain network has inverted residuals without expansion, kernels of 3, max pooling between its
three stages, a stem with CReLU and a classifier that sees every place. It is trained at five
widths. Each change of it is trained at two of them, and is worth its test score less the plain
network's at the same FLOPs: a line over log FLOPs between the two next widths. Every network has
three seeds. The interval is Student's t, of 95 %, from the deviation between seeds that all
networks share; it is of seeds alone, not of other images. `--only fashion` or `--only scenes` takes
one set of images, `--only-networks` some changes.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from by_hand import RATE, Given, Tried, conv, skipped, tried
from by_hand_folder import EPOCHS
from common import Bound, conclude, quick_parser, rounded, show
from folder import SIDE, write_images

Model = dict[str, Any]
WIDTHS = ((6, 12, 24), (8, 16, 32), (16, 32, 64), (24, 48, 96), (32, 64, 128))
CHANGED = (1, 2)
"""Which of the widths have the changes, too."""
SEEDS = 3
ATTENTION: Model = {"head_dim": 8, "mlp_ratio": 1.0}
CONV_MLP: Model = {"token_mixer": "dwconv", "kernel_size": 3, "expansion": 1.0, "mlp_ratio": 1.0}


class Gain(NamedTuple):
    """Points of a change at like FLOPs, half of the interval, and its FLOPs per plain FLOP."""

    points: float
    half: float
    flops: float


def plain(widths: Sequence[int], side: int) -> Model:
    """One block in each stage, two in the last."""
    first, middle, last = widths
    is_small = side == 32
    return {
        "img_size": side,
        "in_chans": 1 if is_small else 3,
        "num_classes": 10,
        "stem": {
            "kind": "conv",
            "stride": 2 if is_small else 4,
            "pools": 1 if is_small else 2,
            "act": "crelu",
            "filters": "dct",
        },
        "norm": "batchnorm",
        "head": {"norm": "none"},
        "global_pool": "flatten",
        "downsample": "maxpool",
        "stages": [conv(first), conv(middle), conv(last, 2)],
    }


def everywhere(model: Model, **more: Any) -> Model:
    """The fields changed in all stages."""
    return model | {"stages": [stage | more for stage in model["stages"]]}


def stage(model: Model, index: int, **more: Any) -> Model:
    """One stage of another kind, as wide and as deep."""
    stages = list(model["stages"])
    kept = {name: stages[index][name] for name in ("embed_dim", "depth")}
    stages[index] = kept | more
    return model | {"stages": stages}


def stem(model: Model, **more: Any) -> Model:
    """The stem's fields changed."""
    return model | {"stem": model["stem"] | more}


def changes(model: Model) -> dict[str, Model]:
    """Every change of the plain network, by its name."""
    convs = int(math.log2(model["stem"]["stride"]))
    attention = {"token_mixer": "mhsa", **ATTENTION}
    with_mhsa = stage(model, -1, **attention)
    blurred = model | {"pooling": "max_blur"}
    tutorial = stem(model, act="relu", filters="random") | {
        "downsample": "vgg",
        "stages": [skipped(stage["embed_dim"]) for stage in model["stages"]],
    }
    return {
        "low-pass filter": blurred,
        "low-pass filter, downsample vgg": blurred | {"downsample": "vgg"},
        "low-pass filter, downsample crelu": blurred | {"downsample": "crelu"},
        "tutorial's CNN": tutorial,
        "tutorial's CNN, low-pass filter": tutorial | {"pooling": "max_blur"},
        "expansion 2": everywhere(model, expansion=2.0),
        "expansion 4": everywhere(model, expansion=4.0),
        "kernels of 5": everywhere(model, kernel_size=5),
        "kernels of 7": everywhere(model, kernel_size=7),
        "squeeze-excitation, 0.25": everywhere(model, se_ratio=0.25),
        "hard swish": everywhere(model, conv_act="hard_swish"),
        "conditional positions": model | {"pos_embed": "conditional"},
        "no positions": model | {"pos_embed": "none"},
        "two convolutions more in the stem": stem(model, convs=convs + 2),
        "one convolution more in the stem": stem(model, convs=convs + 1),
        "residual lrc": model | {"residual": "lrc"},
        "residual scale": model | {"residual": "scale"},
        "stem with ReLU": stem(model, act="relu"),
        "stem without max pooling": stem(model, pools=0),
        "downsample separable": model | {"downsample": "separable"},
        "downsample mbconv": model | {"downsample": "mbconv"},
        "downsample vgg": model | {"downsample": "vgg"},
        "downsample crelu": model | {"downsample": "crelu"},
        "mean pooling": model | {"global_pool": "avg"},
        "last stage dwconv and MLP": stage(model, -1, **CONV_MLP),
        "last stage ska": stage(model, -1, **attention | {"token_mixer": "ska"}),
        "last stage cska": stage(model, -1, **attention | {"token_mixer": "cska"}),
        "last stage mhsa": with_mhsa,
        "middle stage dwconv and MLP": stage(model, 1, **CONV_MLP),
        "middle stage ska": stage(model, 1, **attention | {"token_mixer": "ska"}),
        "middle stage cska": stage(model, 1, **attention | {"token_mixer": "cska"}),
        "middle stage mhsa": stage(model, 1, **attention),
        "last stage mhsa, two passes": stage(model, -1, **attention, groups=[1, 1]),
        "last stage mhsa, two passes and NLL": stage(
            model, -1, **attention, groups=[1, 1], nll_ratio=1.0
        ),
        "last stage mhsa, broad 0.4": with_mhsa | {"broad": {"gamma": 0.4}},
        "last stage mhsa, re-attention": with_mhsa | {"reattention_blocks": 2},
        "last stage mhsa, layernorm": stage(model, -1, **attention, norm="layernorm"),
    }


def at(curve: Sequence[Tried], flops: int) -> tuple[float, list[float]]:
    """The plain network's score at `flops`, and the weight of each width in it.

    Beyond the ends the line of the next two widths goes on.
    """
    logs = [math.log(one.flops) for one in curve]
    x = math.log(flops)
    right = min(max(1, sum(x > log for log in logs)), len(logs) - 1)
    share = (x - logs[right - 1]) / (logs[right] - logs[right - 1])
    weights = [0.0] * len(logs)
    weights[right - 1], weights[right] = 1 - share, share
    return sum(w * one.mean for w, one in zip(weights, curve, strict=True)), weights


def gains(curve: Sequence[Tried], found: Mapping[str, Sequence[Tried]]) -> dict[str, Gain]:
    """Each change against the plain network at the same FLOPs, the mean over its widths."""
    from scipy import stats

    groups = [*curve, *(one for each in found.values() for one in each)]
    freedom = sum(len(one.top1) - 1 for one in groups)
    squares = sum((top1 - one.mean) ** 2 for one in groups for top1 in one.top1)
    spread = math.sqrt(squares / freedom) if freedom else math.nan
    t = float(stats.t.ppf(0.975, freedom)) if freedom else math.nan
    results = {}
    for name, each in found.items():
        points, total = 0.0, [0.0] * len(curve)
        for one in each:
            expected, weights = at(curve, one.flops)
            points += (one.mean - expected) / len(each)
            total = [a + w / len(each) for a, w in zip(total, weights, strict=True)]
        seeds = len(each[0].top1)
        error = spread * math.sqrt((1 / len(each) + sum(w * w for w in total)) / seeds)
        ratio = [one.flops / curve[index].flops for one, index in zip(each, CHANGED, strict=True)]
        results[name] = Gain(points, t * error, math.exp(sum(map(math.log, ratio)) / len(ratio)))
    return results


@contextmanager
def pictures(which: str, quick: bool, epochs: int = EPOCHS) -> Iterator[tuple[Any, Any]]:
    """The images and the short training of `fashion_32`, or of scenes and `images_64`, there of so
    many epochs, all of them augmented."""
    from vitnas.config.space import load_space
    from vitnas.training.data import load_data

    space = load_space("fashion_32" if which == "fashion" else "images_64").config
    if which == "fashion":
        changed = {"lr": RATE} | ({"epochs": 1, "train_fraction": 0.02} if quick else {})
        proxy = space.proxy.model_copy(update=changed)
        yield load_data(space.data, 32, proxy.train_fraction), proxy
        return
    changed = {"epochs": 1 if quick else epochs, "no_augment_epochs": 0}
    proxy = space.proxy.model_copy(update=changed)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        root = Path(folder) / "images"
        write_images(root, quick, "articles")
        yield (
            load_data(
                space.data.model_copy(update={"root": str(root)}), SIDE, proxy.train_fraction
            ),
            proxy,
        )


def measure(which: str, quick: bool, chosen: Sequence[str]) -> dict[str, Gain]:
    """Train the plain network and its changes, and print what each buys."""
    import torch

    torch.set_num_threads(1)
    side = 32 if which == "fashion" else SIDE
    names = chosen or list(changes(plain(WIDTHS[0], side)))
    seeds = range(1 if quick else SEEDS)

    with pictures(which, quick) as (images, proxy):

        def trained(name: str, given: Given) -> Tried:
            one = tried(given, seeds, images, proxy)
            print(f"{which}, {name}: {one.flops / 1e3:,.0f} k, {one.mean:.2f} %", flush=True)
            return one

        curve = [trained("plain", plain(widths, side)) for widths in WIDTHS]
        found = {
            name: [trained(name, changes(plain(WIDTHS[index], side))[name]) for index in CHANGED]
            for name in names
        }
    results = gains(curve, found)
    rows = [
        (name, f"{gain.flops:.2f}", f"{gain.points:+.2f}", f"{gain.half:.2f}")
        for name, gain in sorted(results.items(), key=lambda pair: -pair[1].points)
    ]
    print()
    show((which, "FLOPs of plain", "points", "+-"), rows)
    print()
    return results


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("--only", choices=("fashion", "scenes"), help="one set of images")
    parser.add_argument("--only-networks", nargs="*", default=[], help="only these changes")
    given = parser.parse_args()
    kinds = [given.only] if given.only else ["scenes"] if given.quick else ["fashion", "scenes"]
    chosen = given.only_networks or (["kernels of 5", "last stage mhsa"] if given.quick else [])
    found = {which: measure(which, given.quick, chosen) for which in kinds}
    figures = {
        f"{which}: {name}": rounded(gain.points)
        for which, results in found.items()
        for name, gain in results.items()
    }
    figures["changes"] = float(sum(len(results) for results in found.values()))
    targets: dict[str, Bound] = {"changes": {"min": 1}}
    conclude("blocks", given.quick, figures, targets)


if __name__ == "__main__":
    main()
