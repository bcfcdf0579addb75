"""The long training: the loop of the short one, with files, checkpoints and a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from vitnas.config.recipe import Recipe
from vitnas.errors import ConfigError
from vitnas.nn.layers.residual import residual_scales
from vitnas.training import checkpoint
from vitnas.training.distill import Teacher
from vitnas.training.folders import Files
from vitnas.training.images import Images
from vitnas.training.objective import Batch
from vitnas.training.proxy import EpochResult, Training, count_batches
from vitnas.training.ranks import ALONE, Ranks

Entry = dict[str, Any]


class FinalTraining(Training):
    """Train a network by a recipe; iterating over it gives an `EpochResult` for each epoch.

    It is `Training`, whose images may stay on disk, and which can be written down and resumed.

    Args:
        model, recipe, images, seed, device, teacher, ranks: as for `Training`.
        files: the training images where they stay on disk; None = those of `images`.
        workers: processes that read `files`; 0 = this one.

    Raises:
        ConfigError: the steps are too small for so many processes; and as of `Training`.

    Attributes:
        recipe: as given.
        similarity: mean over the last epoch of the penalty's sum, before its weight; None
            without a penalty.
    """

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        images: Images,
        seed: int,
        device: str | torch.device = "cpu",
        *,
        files: Files | None = None,
        teacher: Teacher | None = None,
        workers: int = 0,
        ranks: Ranks = ALONE,
    ) -> None:
        self.recipe = recipe
        super().__init__(model, recipe, images, seed, device, teacher, ranks=ranks)
        self._files, self._workers = files, workers
        if files is not None:
            self._steps = count_batches(len(files), recipe.batch_size)
        self._check_shares()

    @property
    def num_images(self) -> int:
        """How many images train."""
        return len(self._train if self._files is None else self._files)

    @property
    def similarity(self) -> float | None:
        found = self._objective.similarities
        return float(torch.stack(found).mean()) if found else None

    def modules(self) -> dict[str, nn.Module]:
        """What a checkpoint holds, by prefix."""
        average = {} if self.scored() is self.model else {"ema": self.scored()}
        return {"model": self.model, **average}

    def take(self, identity: dict[str, Any], log: list[Entry]) -> checkpoint.Checkpoint:
        """The checkpoint of the training as it is now."""
        return checkpoint.take(identity, log, self.modules(), self._step.optimizer)

    def restore(self, saved: checkpoint.Checkpoint) -> None:
        """Continue as the training that `saved` was taken from."""
        for prefix, module in self.modules().items():
            saved.restore(prefix, module)
        saved.restore_optimizer(self._step.optimizer)

    def entry(self, result: EpochResult) -> Entry:
        """The log's line for an epoch that has just ended."""
        line: Entry = {
            "epoch": result.epoch,
            "epochs": self.recipe.epochs,
            "loss": result.loss,
            "top1": result.top1,
            "lr": self._rate(result.epoch * self._steps - 1),
            "seconds": round(result.seconds, 3),
        }
        if self.similarity is not None:
            line["similarity"] = self.similarity
        scales = residual_scales(self.scored())
        return {**line, "residual_scales": scales} if scales else line

    def _batches(self, epoch: int) -> Iterator[Batch]:
        return super()._batches(epoch) if self._files is None else self._read(self._files, epoch)

    def _read(self, files: Files, epoch: int) -> Iterator[Batch]:
        """As `_batches`, from the images' files."""
        order = torch.Generator().manual_seed(self._seed("order", epoch))
        seed, ranks, recipe = self._seed("images", epoch), self._ranks, self.recipe.in_epoch(epoch)
        augmenting = self._generator(ranks.own("augment"), epoch)
        whole = map(len, torch.arange(len(files)).tensor_split(self._steps))
        read = files.batches(recipe, self._steps, order, seed, self._workers, ranks)
        for size, (x, y) in zip(whole, read, strict=True):
            x = files.augment(recipe, x.to(self.device, non_blocking=True), augmenting)
            y, weight = y.to(self.device, non_blocking=True), ranks.weight(len(y), size)
            yield Batch(self._train.normalise(x), y, weight=weight)

    def _check_shares(self) -> None:
        """Batch norm needs two images, and so does mixing."""
        size, least = self._ranks.size, self.num_images // self._steps
        if least < 2 * size:
            rule = f"each of {size} processes needs two images of a step, and one has {least}"
            value, nearest = self.recipe.batch_size, 2 * size
            raise ConfigError(rule, address="recipe.batch_size", value=value, nearest=nearest)
