"""What a network answers to labelled images, and the numbers that sum it up.

Top-1's interval is Wilson's. The calibration error is that of Guo et al. (2017, On Calibration of
Modern Neural Networks, Eq. 3):

    ECE = sum over bins of n_bin / n |accuracy(bin) - mean confidence(bin)|,

confidence is the probability of the most likely class, in `BINS` bins of equal width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from vitnas.noise import wilson

BINS = 15
_TOP = 5
_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Answers to n images, one number an image.

    Attributes:
        labels, predicted: classes, as outputs of the network.
        confidence: probability of the predicted class, 0 to 1.
        loss: -log of the true class's probability, in nats.
        in_top5: whether the true class is among the five most likely ones.
        outputs: of the network.
    """

    labels: _Ints
    predicted: _Ints
    confidence: _Floats
    loss: _Floats
    in_top5: npt.NDArray[np.bool_]
    outputs: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """(n,), whether the most likely class is the true one."""
        found: npt.NDArray[np.bool_] = self.labels == self.predicted
        return found

    @property
    def top1(self) -> float:
        """In percent."""
        return 100.0 * int(self.correct.sum()) / len(self)

    @property
    def top1_interval(self) -> tuple[float, float]:
        """Its 95 % interval from the number of images, in percent."""
        return wilson(int(self.correct.sum()), len(self))

    @property
    def top5(self) -> float | None:
        """In percent; None for a network of five classes or fewer."""
        return 100.0 * int(self.in_top5.sum()) / len(self) if self.outputs > _TOP else None

    @property
    def log_loss(self) -> float:
        """Mean over images, in nats."""
        return float(self.loss.mean())

    @property
    def calibration_error(self) -> float:
        """ECE in points, 0 to 100."""
        place = np.clip(np.ceil(self.confidence * BINS).astype(int) - 1, 0, BINS - 1)
        sums = (np.bincount(place, x, BINS) for x in (self.correct.astype(float), self.confidence))
        correct, confident = sums
        return float(100.0 * np.abs(correct - confident).sum() / len(self))

    def pairs(self) -> dict[tuple[int, int], int]:
        """(true class, predicted class) -> number of images, by falling number."""
        both = self.labels * self.outputs + self.predicted
        found, numbers = np.unique(both, return_counts=True)
        order = np.argsort(-numbers, kind="stable")
        return {
            (int(found[at]) // self.outputs, int(found[at]) % self.outputs): int(numbers[at])
            for at in order
        }


def answers_of(batches: Sequence[Answers]) -> Answers:
    """All of them, one after the other."""
    names = ("labels", "predicted", "confidence", "loss", "in_top5")
    whole = {name: np.concatenate([getattr(one, name) for one in batches]) for name in names}
    return Answers(**whole, outputs=batches[0].outputs)


def answers_to(scores: Tensor, labels: Tensor) -> Answers:
    """Answers by scores (B, classes) to images of the classes `labels` (B,)."""
    logs = scores.cpu().double().log_softmax(dim=1)
    predicted = scores.cpu().argmax(dim=1)
    best = logs.topk(min(_TOP, logs.shape[1])).indices
    in_top5 = (best == labels[:, None]).any(dim=1) | (predicted == labels)
    return Answers(
        labels.numpy(),
        predicted.numpy(),
        logs.gather(1, predicted[:, None])[:, 0].exp().numpy(),
        -logs.gather(1, labels[:, None])[:, 0].numpy(),
        in_top5.numpy(),
        outputs=logs.shape[1],
    )
