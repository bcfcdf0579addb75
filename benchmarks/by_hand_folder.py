"""Networks written by hand for a folder of 64 px: which shape is worth its FLOPs?

The images are those of `folder.py`, 2,400 for training. Each network is trained with three seeds by
the short training of `images_64`, in 6 epochs, and scored on 5,000 test images. `images_64` was
designed with such scores in view. Three numbers are the widths of three stages at 16, 8 and 4
places a side, with one block each and two in the last. `strides` is what `images_64` had before:
inverted residuals of expansion 4 between layers of stride 2, a classifier of means. All others have
a stem of two convolutions with CReLU and max pooling, full convolutions with CReLU and pooling
between the stages, inverted residuals without expansion, and a classifier that sees every place;
their last stage is named. `alone`: there are no blocks before it; `no blocks`: none at all.
`--scenes` takes the harder images of `folder.py`.

`--long` trains others for 40 epochs, with one seed: inverted residuals as MobileNetV3 has them,
behind stems with pooling or without, and a classifier that sees the mean of all places or each one.
`2x12` is two blocks of width 12.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from by_hand import SEEDS, Given, all_tried, conv, differences, skipped
from common import Bound, conclude, quick_parser
from folder import SIDE, add_scenes, write_images

EPOCHS, LONG_EPOCHS = 6, 40
VGG, WIDE_VGG = "vgg 8", "vgg 12"
STRIDES, PLAIN, POOLED = "16, 32, 64; strides", "16, 32, 64; mbconv", "16, 32, 64; maxpool, mhsa"
STATIC, FULL, ALONE = "16, 32, 64; ska", "16, 32, 64; mhsa", "16, 32, 64; mhsa alone"


def metaformer(mixer: str, width: int, depth: int = 2, **more: Any) -> dict[str, Any]:
    """A stage of blocks with an MLP; `dwconv` has kernels of 3 and no expansion."""
    if mixer == "dwconv":
        more |= {"kernel_size": 3, "expansion": 1.0}
    else:
        more |= {"head_dim": 8}
    stage = {"token_mixer": mixer, "embed_dim": width, "depth": depth, "mlp_ratio": 2.0}
    return {**stage, **more}


def network(*stages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A network for colour images of 64 px."""
    return {
        "img_size": SIDE,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 4, "pools": 2, "act": "crelu", "filters": "dct"},
        "norm": "batchnorm",
        "head": {"norm": "none"},
        "global_pool": "flatten",
        "downsample": "crelu",
        "stages": list(stages),
        **more,
    }


def last(mixer: str, *widths: int, **more: Any) -> dict[str, Any]:
    """Inverted residuals in the first two stages."""
    first, middle, width = widths
    end = conv(width, 2) if mixer == "mbconv" else metaformer(mixer, width)
    return network(conv(first), conv(middle), end, **more)


def strides(first: int, middle: int, width: int) -> dict[str, Any]:
    """Inverted residuals with squeeze-excitation, and layers of stride 2."""
    more: dict[str, Any] = {"se_ratio": 1.0, "conv_act": "hard_swish"}
    stages = [
        conv(first, 1, 4.0, **more),
        conv(middle, 1, 4.0, **more),
        conv(width, 2, 4.0, **more),
    ]
    stem = {"kind": "metaformer", "stride": 4}
    return network(*stages, stem=stem, global_pool="avg", downsample="mbconv")


NETWORKS: dict[str, Given] = {
    "vgg 4": ("vgg", 4),
    VGG: ("vgg", 8),
    WIDE_VGG: ("vgg", 12),
    STRIDES: strides(16, 32, 64),
    "8, 16, 32; mhsa": last("mhsa", 8, 16, 32),
    PLAIN: last("mbconv", 16, 32, 64),
    POOLED: last("mhsa", 16, 32, 64, downsample="maxpool"),
    "16, 32, 64; dwconv": last("dwconv", 16, 32, 64),
    STATIC: last("ska", 16, 32, 64),
    FULL: last("mhsa", 16, 32, 64),
    "24, 48, 96; mhsa": last("mhsa", 24, 48, 96),
    "8, 16, 32; no blocks": network(*map(skipped, (8, 16, 32))),
    "16, 32, 64; no blocks": network(*map(skipped, (16, 32, 64))),
    "24, 48, 96; no blocks": network(*map(skipped, (24, 48, 96))),
    "8, 24, 64; mhsa alone": network(skipped(8), skipped(24), metaformer("mhsa", 64)),
    "16, 32, 64; dwconv alone": network(skipped(16), skipped(32), metaformer("dwconv", 64)),
    ALONE: network(skipped(16), skipped(32), metaformer("mhsa", 64)),
    "24, 48, 96; mhsa alone": network(skipped(24), skipped(48), metaformer("mhsa", 96)),
}


MOBILE: dict[str, Any] = {"se_ratio": 0.25, "conv_act": "hard_swish"}
MEAN = {"global_pool": "avg", "pos_embed": "none"}
FILTER = {"pooling": "max_blur"}
PLACES = {"global_pool": "flatten", "pos_embed": "learned"}


def inverted(
    text: str, *others: dict[str, Any], pools: int = 2, stride: int = 4, **more: Any
) -> dict[str, Any]:
    """Stages as `2x12, 2x24` of MobileNetV3's blocks, then others; `0x8` has no blocks."""
    sizes = [tuple(map(int, stage.split("x"))) for stage in text.split(", ")]
    stages = [
        conv(width, depth, 4.0, **MOBILE) if depth else skipped(width) for depth, width in sizes
    ]
    fields = {**MEAN, "downsample": "maxpool", **more}
    found = network(*stages, *others, **fields)
    return {**found, "stem": found["stem"] | {"stride": stride, "pools": pools}}


LONG: dict[str, Given] = {
    "mobilenet 3": ("mobilenet", 3),
    "2x4, 2x8, 2x16, 2x32; strides": inverted("2x4, 2x8, 2x16, 2x32", pools=0),
    "0x8, 1x16, 1x32": inverted("0x8, 1x16, 1x32"),
    "0x8, 1x16, 1x32; filter": inverted("0x8, 1x16, 1x32", **FILTER),
    "0x8, 1x16, 1x32; every place": inverted("0x8, 1x16, 1x32", **PLACES),
    "1x8, 1x16, 1x32": inverted("1x8, 1x16, 1x32"),
    "1x8, 1x16, 1x32; every place": inverted("1x8, 1x16, 1x32", **PLACES),
    "0x8, 2x16, 2x32": inverted("0x8, 2x16, 2x32"),
    "0x8, 1x16, 2x48": inverted("0x8, 1x16, 2x48"),
    "mobilenet 8": ("mobilenet", 8),
    "2x4, 2x8, 2x16, 2x32; stride 2": inverted("2x4, 2x8, 2x16, 2x32", stride=2, pools=0),
    "2x12, 2x24, 2x40": inverted("2x12, 2x24, 2x40"),
    "2x12, 2x24, 2x40; filter": inverted("2x12, 2x24, 2x40", **FILTER),
    "2x12, 2x24, 2x40 mhsa": inverted("2x12, 2x24", metaformer("mhsa", 40)),
    "mobilenet 13": ("mobilenet", 13),
    "2x12, 2x24, 3x48; one pool": inverted("2x12, 2x24, 3x48", pools=1),
    "2x16, 2x32, 3x48; strides": inverted("2x16, 2x32, 3x48", pools=0),
    "1x8 dwconv, 1x48, 3x64; crelu": network(
        metaformer("dwconv", 8, 1) | {"expansion": 2.0},
        *inverted("1x48, 3x64")["stages"],
        **MEAN,
    ),
    "2x16 dwconv, 1x32 mhsa, 3x64; crelu": network(
        metaformer("dwconv", 16) | {"expansion": 2.0},
        metaformer("mhsa", 32, 1),
        conv(64, 3, 2.0, **MOBILE),
        **MEAN,
    ),
}


def main() -> None:
    parser = quick_parser(__doc__)
    add_scenes(parser)
    parser.add_argument("--long", action="store_true", help="other networks for 40 epochs")
    asked = parser.parse_args()
    quick = asked.quick
    from vitnas.config.space import load_space
    from vitnas.training.data import load_data

    space = load_space("images_64").config
    epochs = 1 if quick else LONG_EPOCHS if asked.long else EPOCHS
    changed = {"epochs": epochs, "no_augment_epochs": 0}
    proxy = space.proxy.model_copy(update=changed)
    short = (VGG, PLAIN, STRIDES, POOLED, STATIC, FULL, ALONE) if quick else tuple(NETWORKS)
    networks = LONG if asked.long else {name: NETWORKS[name] for name in short}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        root = Path(folder) / "images"
        write_images(root, quick, asked.scenes)
        data = space.data.model_copy(update={"root": str(root)})
        images = load_data(data, SIDE, proxy.train_fraction)
        found = all_tried(networks, images, proxy, 1 if quick or asked.long else SEEDS)
    if asked.long:
        pairs = {"inverted_minus_mobilenet": ("2x12, 2x24, 2x40", "mobilenet 13")}
        wanted: dict[str, Bound] = {"inverted_minus_mobilenet": {"min": -100.0 if quick else 0.0}}
        conclude("by_hand_folder_long", quick, differences(found, pairs), wanted)
        return
    pairs = {
        "mhsa_minus_vgg": (FULL, VGG),
        "mhsa_minus_strides": (FULL, STRIDES),
        "mhsa_minus_mbconv": (FULL, PLAIN),
        "crelu_minus_maxpool": (FULL, POOLED),
        "mhsa_minus_ska": (FULL, STATIC),
        "alone_minus_mhsa": (ALONE, FULL),
    }
    targets: dict[str, Bound] = {"mhsa_minus_vgg": {"min": -100.0 if quick else 0.0}}
    conclude("by_hand_folder", quick, differences(found, pairs), targets)


if __name__ == "__main__":
    main()
