"""The short training of whatever has a key: a network of ours, or a reference; on all its folds."""

from __future__ import annotations

import torch

from vitnas.config.baseline import Baseline
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.seeds import derive_seed
from vitnas.training.device import resolve_device
from vitnas.training.distill import Teacher
from vitnas.training.folds import Folds
from vitnas.training.images import Images
from vitnas.training.proxy import ProxyTraining, Training, seeded


def training_of(
    subject: ModelConfig | Baseline,
    proxy: Recipe,
    images: Images,
    seed: int,
    device: str | torch.device = "cpu",
    teacher: Teacher | None = None,
    int8: bool = False,
) -> Training | Folds:
    """The training of `subject` from weights of the same seed; arguments as of `Training`.

    With `images.folds` there are several, with seeds of their own but for the first.

    Raises:
        DataError: there are too few images for so many folds.
    """
    if images.folds == 1:
        return _training_of(subject, proxy, images, seed, device, teacher, int8)
    images = images.to(resolve_device(device))
    seeds = [seed, *(derive_seed(seed, "fold", number) for number in range(1, images.folds))]
    return Folds(
        [
            _training_of(subject, proxy, images.fold(number), own, device, teacher, int8)
            for number, own in enumerate(seeds)
        ]
    )


def _training_of(
    subject: ModelConfig | Baseline,
    proxy: Recipe,
    images: Images,
    seed: int,
    device: str | torch.device,
    teacher: Teacher | None,
    int8: bool,
) -> Training:
    if isinstance(subject, ModelConfig):
        return ProxyTraining(subject, proxy, images, seed, device, teacher, int8)
    from vitnas.baselines.families import build_baseline  # timm's blocks, which take long to import

    model = seeded(lambda: build_baseline(subject), seed, device)
    return Training(model, proxy, images, seed, device, teacher, int8)
