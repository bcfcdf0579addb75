"""About how long a training takes, from a few timed steps on these images."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import torch

from vitnas.config.baseline import Baseline
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.exported.design import size_of_design
from vitnas.training.distill import Teacher
from vitnas.training.images import Images
from vitnas.training.subject import training_of

_LARGEST = 2e10
"""Multiply-adds of the timed batch's forward pass at most: a second or two on one core."""


def seconds_of_training(
    subject: ModelConfig | Baseline,
    proxy: Recipe,
    images: Images,
    threads: int | None = None,
    teacher: Teacher | None = None,
) -> float | None:
    """Seconds of a proxy training of `subject` on the CPU, scoring included; a rough guess.

    Two short epochs over a few images are trained; the second one is timed. Nothing random outside
    is touched.

    Args:
        subject: the network.
        proxy: the training.
        images: at the network's size.
        threads: CPU threads of torch; None leaves them as they are.
        teacher: the one that the recipe names, where it is loaded already.

    Returns:
        The guess; None where those epochs fail.
    """
    used = images.train.subset(proxy.train_fraction, images.split_seed)
    affordable = max(2, int(_LARGEST / size_of_design(subject).flops))
    batch = min(proxy.batch_size, affordable)
    share = min(1.0, 2 * batch / len(used))
    scored = (1 + (proxy.epochs - 1) * proxy.curve_fraction) / proxy.epochs  # a mean epoch
    train, val = used.subset(share, 0), images.val.subset(share * scored, 0)
    few = replace(images, train=train, val=val, folds=1, fraction=1.0)
    whole = {"train_fraction": 1.0, "curve_fraction": 1.0}
    short = proxy.model_copy(update={"epochs": 2, "batch_size": batch, **whole})
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        *_, last = training_of(subject, short, few, 0, teacher=teacher)
    except Exception:  # what cannot be trained is the outcome of its trial; this is only a guess
        return None
    finally:
        torch.set_num_threads(before)
    return last.seconds * images.folds * proxy.epochs * len(used) / len(few.train)


def seconds_between(flops: float, ends: tuple[tuple[float, float], tuple[float, float]]) -> float:
    """Seconds for `flops`, on the line through two points (log FLOPs, log seconds)."""
    (low, first), (high, last) = ends
    if low == high:
        return first
    share = log(flops / low) / log(high / low)
    return exp(log(first) + share * (log(last) - log(first)))
