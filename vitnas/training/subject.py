"""The short training of whatever has a key: a network of ours, or a reference."""

from __future__ import annotations

import torch

from vitnas.baselines.baseline import Baseline
from vitnas.baselines.families import build_baseline
from vitnas.baselines.sizes import price
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.cost.closed_form import closed_form
from vitnas.training.data import Images
from vitnas.training.proxy import ProxyTraining, Training, seeded


def training_of(
    subject: ModelConfig | Baseline,
    proxy: ProxyConfig,
    images: Images,
    seed: int,
    device: str | torch.device = "cpu",
) -> Training:
    """The training of `subject` from weights of the same seed; arguments as of `Training`."""
    if isinstance(subject, ModelConfig):
        return ProxyTraining(subject, proxy, images, seed, device)
    model = seeded(lambda: build_baseline(subject), seed, device)
    return Training(model, proxy, images, seed, device)


def flops_of(subject: ModelConfig | Baseline) -> int:
    """Multiply-adds of one image."""
    if isinstance(subject, ModelConfig):
        return closed_form(subject).flops
    return price(subject).flops
