"""README.md of a network that a recipe trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from vitnas.config.notation import human
from vitnas.environment import hardware, session_facts
from vitnas.errors import printable
from vitnas.exported.card import card_of, interval, listed, numbers
from vitnas.exported.design import size_of_design
from vitnas.exported.write import Written
from vitnas.training.images import Images
from vitnas.training.plan import Plan
from vitnas.words import plural


def training_card(
    plan: Plan,
    images: Images,
    log: list[dict[str, Any]],
    test: float | None,
    folder: Path,
    written: Written | None = None,
    start: str = "",
    device: str = "cpu",
) -> str:
    """The card as Markdown.

    Args:
        plan, images, log: of the training that has ended.
        test: top-1 on the test images in percent, or None.
        folder: where the network is written.
        written: its files that run without vitnas.
        start: where its first weights came from, as `start_from` says it; empty = fresh weights.
        device: that trained it, as torch names it.
    """
    return card_of(
        plan.config,
        folder,
        "training.md.j2",
        plan=plan,
        title=title_of(plan, log[-1]["top1"]),
        scored=interval(log[-1]["top1"], len(images.val)),
        tested=interval(test, len(images.test()) if images.has_test else None),
        device=_named(device),
        versions=listed(session_facts()["versions"]),
        standalone=written,
        start=start,
        recipe=plan.recipe,
        top1=log[-1]["top1"],
        test_top1=test,
        mean=numbers(images.mean),
        std=numbers(images.std),
        data=listed(plan.data.model_dump()),
    )


def title_of(plan: Plan, top1: float) -> str:
    """`digits-trial-7: 61.23 % top-1 on the scoring split after 2 epochs, 210k FLOPs`."""
    flops = human(size_of_design(plan.config).flops)
    after = f"after {plural(plan.recipe.epochs, 'epoch')}"
    name = printable(plan.config.name)
    return f"{name}: {top1:.2f} % top-1 on the scoring split {after}, {flops} FLOPs"


def _named(device: str) -> str:
    """The card's name of a CUDA device, else the CPU's."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return str(hardware()["cpu"])
