"""Networks written by hand for the images of `fashion_32`: which shape is worth its FLOPs?

Each is trained with three seeds by the space's own short training and scored on the test images, by
which nothing was chosen. `expansion 1` is a stage of depthwise-separable convolutions with residual
connections: as wide as the FLOPs allow, without the wider middle of MobileNet's blocks.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

from common import Bound, Figures, conclude, is_quick, rounded, show

SEEDS = 3
WIDE, NARROW, MOBILENET = "32, 64, 64; expansion 1", "16, 32, 64; expansion 4", "mobilenet 12"
STATIC, PLAIN = "32, 64, 64; static keys in the last", "dwcnn 24"


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


def network(*stages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A network for grey images of 32 px."""
    return {
        "img_size": 32,
        "in_chans": 1,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2},
        "norm": "batchnorm",
        "head": {"norm": "none"},
        "downsample": "separable",
        "stages": list(stages),
        **more,
    }


def mobile() -> dict[str, Any]:
    """One of MobileNetV3's blocks a stage, and in between."""
    narrow = {"expansion": 4.0, "se_ratio": 0.25, "conv_act": "hard_swish"}
    between = {"downsample_expansion": 4.0, "downsample_se_ratio": 0.25}
    stem = {"kind": "metaformer", "stride": 2}
    stages = (conv(width, **narrow) for width in (16, 32, 64))
    return network(*stages, downsample="mbconv", stem=stem, **between)


SKA = {"token_mixer": "ska", "embed_dim": 64, "head_dim": 16, "mlp_ratio": 1.0}
MHSA = SKA | {"token_mixer": "mhsa"}
NETWORKS: dict[str, dict[str, Any] | tuple[str, int]] = {
    "16, 32, 32; expansion 1": network(conv(16), conv(32), conv(32, 2)),
    "dwcnn 12": ("dwcnn", 12),
    "24, 48, 48; expansion 1": network(conv(24), conv(48), conv(48, 2)),
    "dwcnn 18": ("dwcnn", 18),
    WIDE: network(conv(32), conv(64), conv(64, 2)),
    "the same with squeeze-excitation": network(
        *(conv(w, d, se_ratio=0.25, conv_act="hard_swish") for w, d in ((32, 1), (64, 1), (64, 2)))
    ),
    STATIC: network(conv(32), conv(64), SKA),
    "32, 64, 64; attention in the last": network(conv(32), conv(64), MHSA),
    PLAIN: ("dwcnn", 24),
    "24, 48, 48; expansion 2": network(*(conv(width, expansion=2.0) for width in (24, 48, 48))),
    MOBILENET: ("mobilenet", 12),
    "48, 96, 96; expansion 1": network(conv(48), conv(96), conv(96, 2)),
    "dwcnn 32": ("dwcnn", 32),
    NARROW: mobile(),
    "48, 96, 96; two blocks in the second, too": network(conv(48), conv(96, 2), conv(96, 2)),
    "mobilenet 16": ("mobilenet", 16),
    "64, 128, 128; expansion 1": network(conv(64), conv(128), conv(128, 2)),
}


def builder(given: dict[str, Any] | tuple[str, int]) -> Callable[[], Any]:
    """What builds a network: a baseline by family and width, or one of ours."""
    from vitnas.baselines.baseline import Baseline
    from vitnas.baselines.families import build_baseline
    from vitnas.config.model import ModelConfig
    from vitnas.nn.model import build_model

    if isinstance(given, dict):
        config = ModelConfig.model_validate(given)
        return lambda: build_model(config)
    family, width = given
    facts = {"image_hw": (32, 32), "in_chans": 1, "num_classes": 10}
    baseline = Baseline(family=family, width=width, **facts)
    return lambda: build_baseline(baseline)


def tried(given: dict[str, Any] | tuple[str, int], seeds: int, images: Any, proxy: Any) -> Tried:
    """Train a network with each seed."""
    import torch

    from vitnas.cost.operators import count_flops
    from vitnas.training.proxy import Training, evaluate

    build, top1 = builder(given), []
    for seed in range(seeds):
        torch.manual_seed(1000 + seed)
        training = Training(build(), proxy, images, seed=seed)
        for _ in training:
            pass
        top1.append(evaluate(training.model, images.test()))
    return Tried(count_flops(build(), (images.in_chans, *images.image_hw)), top1)


def main() -> None:
    quick = is_quick(__doc__)
    import torch

    from vitnas.config.data import DataConfig
    from vitnas.config.space import load_space
    from vitnas.training.data import load_data

    torch.set_num_threads(1)
    space = load_space("fashion_32").config
    changes = {"epochs": 1, "train_fraction": 0.3} if quick else {}
    proxy = space.proxy.model_copy(update=changes)
    images = load_data(DataConfig() if quick else space.data, 32, proxy.train_fraction)
    kept = (WIDE, STATIC, PLAIN, NARROW, MOBILENET) if quick else tuple(NETWORKS)
    found = {name: tried(NETWORKS[name], 1 if quick else SEEDS, images, proxy) for name in kept}
    rows = [
        (name, f"{one.flops / 1e3:,.0f} k", f"{one.mean:.2f}", f"{one.error:.2f}")
        for name, one in sorted(found.items(), key=lambda pair: pair[1].flops)
    ]
    show(("network", "FLOPs", "test top-1", "error"), rows)
    figures: Figures = {
        "wide_minus_plain": rounded(found[WIDE].mean - found[PLAIN].mean),
        "wide_minus_mobilenet": rounded(found[WIDE].mean - found[MOBILENET].mean),
        "wide_minus_narrow": rounded(found[WIDE].mean - found[NARROW].mean),
        "wide_minus_static_keys": rounded(found[WIDE].mean - found[STATIC].mean),
    }
    targets: dict[str, Bound] = {} if quick else {"wide_minus_plain": {"min": 0.0}}
    conclude("by_hand", quick, figures, targets or {"wide_minus_plain": {"min": -100.0}})


if __name__ == "__main__":
    main()
