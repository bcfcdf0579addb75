"""Networks written by hand for the images of `fashion_32`: which shape is worth its FLOPs?

Each is trained with three seeds by the space's own short training and scored on the test images, by
which nothing was chosen. Three numbers are the widths of three stages of depthwise-separable
convolutions with residual connections, two of them in the last stage. `strides`: the stem and the
layers between stages halve the grid by a stride of 2; `pools`: by 2x2 max pooling; `flatten`: the
classifier sees every place instead of their mean; `crelu stem`: half of the stem's filters, and
their negatives, which start as a cosine transform or, with `random`, as PyTorch's; `crelu`: full
convolutions between the stages, too, with half of the filters; `no blocks`: nothing but these.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from common import Bound, Figures, conclude, is_quick, rounded, show

Given = dict[str, Any] | tuple[str, int]
"""A model, or family and width of a baseline."""
RATE = 3.2e-2  # that of `fashion_32` when this was measured; it has half of it now
SEEDS = 3
STRIDES, BETWEEN, POOLS = "32, 64, 64; strides", "32, 64, 64; pools between", "32, 64, 64; pools"
SMALL, VGG = "16, 32, 64; pools", "vgg 8"
CRELU, RANDOM = "8, 12, 24; crelu", "8, 12, 24; crelu, random"


class Tried(NamedTuple):
    """FLOPs of one image, and top-1 in percent on the test images for each seed."""

    flops: int
    top1: list[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.top1)

    @property
    def error(self) -> float:
        return statistics.stdev(self.top1) / len(self.top1) ** 0.5 if len(self.top1) > 1 else 0.0


def conv(width: int, depth: int = 1, expansion: float = 1.0, **more: Any) -> dict[str, Any]:
    """A stage of inverted residuals."""
    stage = {"token_mixer": "mbconv", "embed_dim": width, "depth": depth, "expansion": expansion}
    return {**stage, **more}


def network(
    *stages: dict[str, Any], between: str = "maxpool", pools: int = 1, **more: Any
) -> dict[str, Any]:
    """A network for grey images of 32 px."""
    return {
        "img_size": 32,
        "in_chans": 1,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2, "pools": pools},
        "norm": "batchnorm",
        "head": {"norm": "none"},
        "downsample": between,
        "stages": list(stages),
        **more,
    }


def plain(*widths: int, **more: Any) -> dict[str, Any]:
    """A block in each stage, and two in the last."""
    *first, last = widths
    return network(*(conv(width) for width in first), conv(last, 2), **more)


def crelu(
    *widths: int, between: str = "crelu", filters: str = "dct", skip: bool = False
) -> dict[str, Any]:
    """A block in each stage, or none, filters with their negatives, a classifier that sees every
    place."""
    stem = {"kind": "conv", "stride": 2, "pools": 1, "act": "crelu", "filters": filters}
    stages = [skipped(width) if skip else conv(width) for width in widths]
    return network(*stages, between=between, stem=stem, global_pool="flatten")


def skipped(width: int) -> dict[str, Any]:
    """A stage without blocks."""
    return {"token_mixer": "skip", "embed_dim": width}


ON_STRIDES: dict[str, Any] = {"between": "separable", "pools": 0}
SKA = {"token_mixer": "ska", "embed_dim": 64, "head_dim": 16, "mlp_ratio": 1.0}
MHSA = SKA | {"token_mixer": "mhsa"}
NETWORKS: dict[str, Given] = {
    "vgg 4": ("vgg", 4),
    "8, 16, 32; pools": plain(8, 16, 32),
    "8, 16, 32; pools, flatten": plain(8, 16, 32, global_pool="flatten"),
    "8, 16, 32; crelu stem": crelu(8, 16, 32, between="maxpool"),
    CRELU: crelu(8, 12, 24),
    RANDOM: crelu(8, 12, 24, filters="random"),
    "8, 24, 48; crelu": crelu(8, 24, 48),
    "4, 8, 16; crelu, no blocks": crelu(4, 8, 16, skip=True),
    "8, 12, 24; crelu, no blocks": crelu(8, 12, 24, skip=True),
    "8, 16, 32; crelu, no blocks": crelu(8, 16, 32, skip=True),
    "8, 24, 48; crelu, no blocks": crelu(8, 24, 48, skip=True),
    "16, 24, 48; crelu, no blocks": crelu(16, 24, 48, skip=True),
    "dwcnn 12": ("dwcnn", 12),
    "16, 32, 64; strides": plain(16, 32, 64, **ON_STRIDES),
    SMALL: plain(16, 32, 64),
    "16, 32, 64; pools, flatten": plain(16, 32, 64, global_pool="flatten"),
    VGG: ("vgg", 8),
    "16, 32, 64; pools, static keys in the last": network(conv(16), conv(32), SKA),
    "16, 32, 64; pools, attention in the last": network(conv(16), conv(32), MHSA),
    STRIDES: plain(32, 64, 64, **ON_STRIDES),
    BETWEEN: plain(32, 64, 64, pools=0),
    POOLS: plain(32, 64, 64),
    "dwcnn 24": ("dwcnn", 24),
    "vgg 12": ("vgg", 12),
    "mobilenet 12": ("mobilenet", 12),
}


def builder(given: Given, images: Any) -> Callable[[], Any]:
    """What builds a network: a baseline by family and width, or one of ours."""
    from vitnas.baselines.families import build_baseline
    from vitnas.config.baseline import Baseline
    from vitnas.config.model import ModelConfig
    from vitnas.nn.model import build_model

    if isinstance(given, dict):
        config = ModelConfig.model_validate(given)
        return lambda: build_model(config)
    family, width = given
    facts = {name: getattr(images, name) for name in ("image_hw", "in_chans", "num_classes")}
    baseline = Baseline(family=family, width=width, **facts)
    return lambda: build_baseline(baseline)


def tried(given: Given, seeds: Iterable[int], images: Any, proxy: Any) -> Tried:
    """Train a network with each seed; top-1 is of the test images, also where these are `val`."""
    import torch

    from vitnas.cost.operators import count_flops
    from vitnas.training.proxy import Training
    from vitnas.training.score import evaluate

    build, top1 = builder(given, images), []
    for seed in seeds:
        torch.manual_seed(1000 + seed)
        training = Training(build(), proxy, images, seed=seed)
        for _ in training:
            pass
        test = images.test() if images.has_test else images.val
        top1.append(evaluate(training.scored(), test))
    return Tried(count_flops(build(), (images.in_chans, *images.image_hw)), top1)


def all_tried(
    networks: Mapping[str, Given], images: Any, proxy: Any, num_seeds: int
) -> dict[str, Tried]:
    """Train all networks with so many seeds, and print their table."""
    import torch

    torch.set_num_threads(1)
    seeds = range(num_seeds)
    found = {name: tried(given, seeds, images, proxy) for name, given in networks.items()}
    rows = [
        (name, f"{one.flops / 1e3:,.0f} k", f"{one.mean:.2f}", f"{one.error:.2f}")
        for name, one in sorted(found.items(), key=lambda pair: pair[1].flops)
    ]
    show(("network", "FLOPs", "test top-1", "error"), rows)
    return found


def differences(found: Mapping[str, Tried], pairs: Mapping[str, tuple[str, str]]) -> Figures:
    """By how many points the first of each pair is above the second."""
    return {name: rounded(found[a].mean - found[b].mean) for name, (a, b) in pairs.items()}


def main() -> None:
    quick = is_quick(__doc__)
    from vitnas.config.data import DataConfig
    from vitnas.config.space import load_space
    from vitnas.training.data import load_data

    space = load_space("fashion_32").config
    changes = {"lr": RATE} | ({"epochs": 1, "train_fraction": 0.3} if quick else {})
    proxy = space.proxy.model_copy(update=changes)
    images = load_data(DataConfig() if quick else space.data, 32, proxy.train_fraction)
    kept = (STRIDES, BETWEEN, POOLS, SMALL, VGG, CRELU, RANDOM) if quick else tuple(NETWORKS)
    seeds = 1 if quick else SEEDS
    found = all_tried({name: NETWORKS[name] for name in kept}, images, proxy, seeds)
    pairs = {
        "pools_between_minus_strides": (BETWEEN, STRIDES),
        "pools_minus_strides": (POOLS, STRIDES),
        "small_pools_minus_vgg": (SMALL, VGG),
        "crelu_minus_vgg": (CRELU, VGG),
        "dct_minus_random": (CRELU, RANDOM),
    }
    least = -100.0 if quick else 0.0
    targets: dict[str, Bound] = {"pools_between_minus_strides": {"min": least}}
    conclude("by_hand", quick, differences(found, pairs), targets)


if __name__ == "__main__":
    main()
