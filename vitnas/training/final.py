"""The long training: all fields of a recipe, on top of the loop of the short training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vitnas.config.recipe import Recipe
from vitnas.nn.layers.residual import residual_scales
from vitnas.training import checkpoint
from vitnas.training.data import Images
from vitnas.training.device import own_all_randomness
from vitnas.training.distill import Teacher, soft_cross_entropy
from vitnas.training.folders import Files
from vitnas.training.mixed_depth import kept_stem, shallow_logits
from vitnas.training.mixing import Mixing
from vitnas.training.optim import recipe_rate
from vitnas.training.penalty import recorded_maps, similarity_penalty
from vitnas.training.proxy import EpochResult, Training, autocast, count_batches

Entry = dict[str, Any]


class FinalTraining(Training):
    """Train a network by a recipe; iterating over it gives an `EpochResult` for each epoch.

    What is not a field of `Recipe` is as in `Training`. The global random states of Python, NumPy
    and torch are left as they were.

    Args:
        model, recipe, images, seed, device: as for `Training`.
        files: the training images where they stay on disk; None = those of `images`.
        teacher: what replaces the labels, or None.
        workers: processes that read `files`; 0 = this one.

    Attributes:
        recipe: as given.
        ema: the moving average of the network, or None.
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
    ) -> None:
        self.recipe = recipe
        super().__init__(model, recipe, images, seed, device)
        self._files, self._teacher, self._workers = files, teacher, workers
        if files is not None:
            self._steps = count_batches(len(files), recipe.batch_size)
        self._mixing = Mixing(recipe, images.num_classes, self.device)
        self._done = 0
        self._similarities: list[Tensor] = []
        self.ema: Any = None
        if recipe.ema_decay:
            from timm.utils import ModelEmaV3

            self.ema = ModelEmaV3(self.model, decay=recipe.ema_decay, use_warmup=True)

    @property
    def num_images(self) -> int:
        """How many images train."""
        return len(self._train if self._files is None else self._files)

    @property
    def similarity(self) -> float | None:
        return float(torch.stack(self._similarities).mean()) if self._similarities else None

    def epochs(self, first: int = 1) -> Iterator[EpochResult]:
        """See `Training.epochs`."""
        self._done = (first - 1) * self._steps
        return super().epochs(first)

    def modules(self) -> dict[str, nn.Module]:
        """What a checkpoint holds, by prefix."""
        average = {} if self.ema is None else {"ema": self.ema.module}
        return {"model": self.model, **average}

    def take(self, identity: dict[str, Any], log: list[Entry]) -> checkpoint.Checkpoint:
        """The checkpoint of the training as it is now."""
        return checkpoint.take(identity, log, self.modules(), self._optimizer)

    def restore(self, saved: checkpoint.Checkpoint) -> None:
        """Continue as the training that `saved` was taken from."""
        for prefix, module in self.modules().items():
            saved.restore(prefix, module)
        saved.restore_optimizer(self._optimizer)

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

    def _rate(self, step: int) -> float:
        return recipe_rate(self.recipe, step, self._steps)

    def _randomness(self, seed: int) -> AbstractContextManager[None]:
        return own_all_randomness(seed, self.device)

    def scored(self) -> nn.Module:
        """What is scored and exported: the network, or its moving average."""
        return self.model if self.ema is None else self.ema.module

    def _batches(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        self._similarities = []
        return super()._batches(epoch) if self._files is None else self._read(self._files, epoch)

    def _read(self, files: Files, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """As `_batches`, from the images' files."""
        order = torch.Generator().manual_seed(self._seed("order", epoch))
        seed, augmenting = self._seed("images", epoch), self._generator("augment", epoch)
        for x, y in files.batches(self.recipe, self._steps, order, seed, self._workers):
            x = files.augment(self.recipe, x.to(self.device, non_blocking=True), augmenting)
            yield self._train.normalise(x), y.to(self.device, non_blocking=True)

    def _step(self, x: Tensor, y: Tensor, rate: float) -> Tensor:
        loss = super()._step(x, y, rate)
        self._done += 1
        if self.ema is not None:
            self.ema.update(self.model, step=self._done)
        return loss

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean over the branches of the loss against labels or teacher, and the penalty."""
        penalty = self.recipe.similarity_penalty
        x, target = self._mixing(x, y)
        branches, maps = self._forward(x)
        loss = self._criterion(branches, x, target)
        if not penalty.weight:
            return loss
        similarity = similarity_penalty(maps, penalty.blocks, len(x))
        self._similarities.append(similarity.detach())
        return loss + penalty.weight * similarity

    def _forward(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Logits of the network and, in mixed depth, of its shallow branch; the network's maps."""
        nothing: AbstractContextManager[list[Tensor]] = nullcontext([])
        recording = recorded_maps(self.model) if self.recipe.similarity_penalty.weight else nothing
        keeping = kept_stem(self.model) if self.recipe.mixed_depth else nothing
        with autocast(self.device):
            with recording as maps, keeping as stems:
                branches = [self.model(x)]
            if self.recipe.mixed_depth:
                branches.append(shallow_logits(self.model, x, stems[0]))
        return [logits.float() for logits in branches], maps

    def _criterion(self, branches: list[Tensor], x: Tensor, target: Tensor) -> Tensor:
        if self._teacher is not None:
            wanted, heat = self._teacher(x), self.recipe.distill.temperature
            losses = [soft_cross_entropy(logits, wanted, heat) for logits in branches]
        else:  # mixed targets are smoothed already
            smoothing = 0.0 if target.is_floating_point() else self.recipe.label_smoothing
            losses = [cross_entropy(each, target, label_smoothing=smoothing) for each in branches]
        return torch.stack(losses).mean()
