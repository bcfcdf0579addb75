"""What it is worth that a training settles BatchNorm's running statistics from its first batch on.

Four networks are trained on digits for 18, 27 and 72 steps (2, 3 and 8 epochs of 9 steps), each
with several seeds: as vitnas does, and by PyTorch's own rule. The table has the mean top-1 on the
scoring images by either, in percent.
"""

from __future__ import annotations

from contextlib import nullcontext
from statistics import fmean
from typing import Any

from common import Figures, conclude, is_quick, rounded, show

from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.training.data import load_data
from vitnas.training.images import Images
from vitnas.training.proxy import ProxyTraining

STEPS_OF_EPOCH = 9  # 1,151 images in batches of 128
NETWORKS: dict[str, tuple[tuple[str, str], dict[str, str]]] = {
    "mbconv, separable": (("mbconv", "mbconv"), {"downsample": "separable"}),
    "mbconv, downsampling mbconv": (("mbconv", "mbconv"), {"downsample": "mbconv"}),
    "dwconv and mhsa, batchnorm": (("dwconv", "mhsa"), {"norm": "batchnorm"}),
    "dwconv and mhsa, BatchNorm in the stem": (("dwconv", "mhsa"), {}),
}
"""By name: the mixers of both stages, and other fields."""


class _Plain(ProxyTraining):
    """The same training by PyTorch's rule."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._statistics = _NotSettled()  # type: ignore[assignment]


class _NotSettled:
    step = nullcontext


def network(name: str) -> ModelConfig:
    """Two stages of 16 and 32 channels for digits."""
    mixers, fields = NETWORKS[name]
    stages = [
        {"token_mixer": mixer, "embed_dim": width, "head_dim": 8, "kernel_size": 3}
        for mixer, width in zip(mixers, (16, 32), strict=True)
    ]
    shape = {"img_size": 8, "in_chans": 1, "num_classes": 10, "stem": {"kind": "conv", "stride": 1}}
    return ModelConfig.model_validate({**shape, "stages": stages, **fields})


def top1(
    training: type[ProxyTraining], config: ModelConfig, images: Images, epochs: int, seeds: int
) -> float:
    """Mean over the seeds after the last epoch."""
    proxy = ProxyConfig(epochs=epochs, batch_size=128, optimizer="muon", lr=1.2e-2)
    ends = [list(training(config, proxy, images, seed))[-1].top1 for seed in range(seeds)]
    return fmean(ends)


def main() -> None:
    quick = is_quick(__doc__)
    images, seeds = load_data(DataConfig(), 8), 1 if quick else 5
    lengths = (2,) if quick else (2, 3, 8)
    rows: list[list[str]] = []
    gains: dict[int, list[float]] = {epochs: [] for epochs in lengths}
    for name in NETWORKS:
        cells = [name]
        for epochs in lengths:
            ours, theirs = (
                top1(kind, network(name), images, epochs, seeds) for kind in (ProxyTraining, _Plain)
            )
            gains[epochs].append(ours - theirs)
            cells += [f"{theirs:.1f}", f"{ours:.1f}"]
        rows.append(cells)
    steps = [epochs * STEPS_OF_EPOCH for epochs in lengths]
    show(["top-1, %", *(f"{n} steps, {who}" for n in steps for who in ("PyTorch", "ours"))], rows)
    figures: Figures = {
        f"mean gain after {epochs * STEPS_OF_EPOCH} steps": rounded(fmean(gains[epochs]))
        for epochs in lengths
    }
    conclude("settling", quick, figures, {"mean gain after 18 steps": {"min": 5.0}})


if __name__ == "__main__":
    main()
