"""How good a network is on a split, and when it has diverged."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vitnas.training.device import autocast
from vitnas.training.split import Split

_PIXELS, _FEWEST = 2**18, 16
"""On the CPU a batch has at most so many pixels of a channel, but not fewer images than that: what
is between the layers then stays near the core, and takes a few hundred MB less. By
`benchmarks/scoring.py` larger batches are no faster, or slower."""


class Diverged(Exception):
    """The loss or a logit is no longer finite: an outcome of the architecture, not an error."""


@dataclass(frozen=True)
class Score:
    """How good a network is on a split.

    Attributes:
        top1: percent, 0 to 100.
        log_likelihood: mean log-probability of the true class, in nats, at most 0. It is minus the
            cross entropy without label smoothing, and chance has -log(classes).
    """

    top1: float
    log_likelihood: float

    @classmethod
    def of(cls, found: Tensor) -> Score:
        """From a `tally`."""
        correct, loss, images = found.tolist()
        return cls(100.0 * correct / images, -loss / images)


def score(model: nn.Module, split: Split, batch_size: int = 512) -> Score:
    """Score `model` on `split`; the model is left in eval mode.

    The split's batches are moved to the model's device; a model without parameters is on the CPU,
    where large images come in smaller batches. No randomness.

    Raises:
        Diverged: a logit is not finite.
    """
    return Score.of(tally(model, split, batch_size))


def tally(
    model: nn.Module, split: Split, batch_size: int = 512, which: slice = slice(None)
) -> Tensor:
    """What `score` is made of, of the batches `which` alone; otherwise as `score`.

    Returns:
        (3,) float64 on the model's device: images whose class is right, the sum of the cross
        entropies, images.
    """
    device = next((one.device for one in model.parameters()), torch.device("cpu"))
    correct, images = torch.zeros(2, dtype=torch.int64, device=device)
    loss, magnitude = torch.zeros(2, device=device)
    model.eval()
    with torch.no_grad(), autocast(device):
        for x, y in split.batches(batch_on(device, batch_size, split), which):
            logits, y = model(split.normalise(x).to(device)).float(), y.to(device)
            correct += (logits.argmax(dim=1) == y).sum()
            images += len(y)
            loss += cross_entropy(logits, y, reduction="sum")
            magnitude += logits.abs().max()
    check_finite(float(magnitude), "logits")
    return torch.stack([correct.double(), loss.double(), images.double()])


def batch_on(device: torch.device, most: int, split: Split) -> int:
    """How many images of `split` are scored at a time, at most `most`."""
    if device.type != "cpu":
        return most
    height, width = split.pixels.shape[2:]
    return min(most, max(_FEWEST, _PIXELS // (height * width)))


def evaluate(model: nn.Module, split: Split, batch_size: int = 512) -> float:
    """Top-1 of `model` on `split`, in percent; otherwise as `score`."""
    return score(model, split, batch_size).top1


def check_finite(number: float, what: str) -> float:
    """The number, which is `what`.

    Raises:
        Diverged: it is infinite, or none.
    """
    if not math.isfinite(number):
        raise Diverged(f"{what} is {number}")
    return number
