"""A network that is trained on several folds: what it reaches is the mean over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from torch import nn

from vitnas.training.proxy import EpochResult, Training


class Folds:
    """Trainings of one network, each scored on other images; an epoch of each at a time.

    So a search can stop all of them early together. Iterate over it to get an `EpochResult` an
    epoch: means, and the seconds of all.

    Args:
        trainings: one a fold, with equal epochs. The first one stands for all where one network is
            asked for: its weights are kept.

    Attributes:
        model, images, device, proxy: of the first.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        self._trainings = tuple(trainings)
        first = trainings[0]
        self.model: nn.Module = first.model
        self.images, self.device, self.proxy = first.images, first.device, first.proxy

    def __iter__(self) -> Iterator[EpochResult]:
        for results in zip(*self._trainings, strict=True):
            yield EpochResult(
                epoch=results[0].epoch,
                top1=fmean(result.top1 for result in results),
                loss=fmean(result.loss for result in results),
                seconds=sum(result.seconds for result in results),
                log_likelihood=fmean(result.log_likelihood for result in results),
                float_top1=_mean(result.float_top1 for result in results),
            )

    def scored(self) -> nn.Module:
        """The network of the first fold, or its moving average."""
        return self._trainings[0].scored()

    def counted(self) -> nn.Module:
        """The same, in int8 where that counts."""
        return self._trainings[0].counted()


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
