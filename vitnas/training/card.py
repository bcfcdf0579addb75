"""README.md of a network that a recipe trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitnas.exported.card import card_of, listed, numbers
from vitnas.exported.write import Written
from vitnas.training.data import Images
from vitnas.training.plan import Plan


def training_card(
    plan: Plan,
    images: Images,
    log: list[dict[str, Any]],
    test: float | None,
    folder: Path,
    written: Written | None = None,
    start: str = "",
) -> str:
    """The card as Markdown.

    Args:
        plan, images, log: of the training that has ended.
        test: top-1 on the test images in percent, or None.
        folder: where the network is written.
        written: its files that run without vitnas.
        start: where its first weights came from, as `start_from` says it; empty = fresh weights.
    """
    return card_of(
        plan.config,
        folder,
        "training.md.j2",
        plan=plan,
        standalone=written,
        start=start,
        recipe=plan.recipe,
        top1=log[-1]["top1"],
        test_top1=test,
        mean=numbers(images.mean),
        std=numbers(images.std),
        data=listed(plan.data.model_dump()),
    )
