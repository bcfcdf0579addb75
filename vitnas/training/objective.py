"""What a step of training makes small: the loss of a recipe, with everything that it mixes in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import ceil
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vitnas.config.recipe import Recipe
from vitnas.training.device import autocast
from vitnas.training.distill import Teacher, hard_cross_entropy, soft_cross_entropy
from vitnas.training.mixed_depth import has_shallow_branch, kept_stem, shallow_logits
from vitnas.training.mixing import Mixing
from vitnas.training.penalty import recorded_maps, similarity_penalty

Scores = tuple[Tensor, Tensor]
"""Logits `(B, classes)` of the class and of the distillation token, or the network's twice."""


class Batch(NamedTuple):
    """Images of one step.

    Attributes:
        x: (B, C, H, W), normalised.
        y: (B,) their classes, or (B, classes) probabilities.
        taught: (B, classes) the teacher's logits for `x`, where they are known before.
        weight: what the gradient of its mean loss counts in the step; 1 = it is the whole step.
    """

    x: Tensor
    y: Tensor
    taught: Tensor | None = None
    weight: float = 1.0

    def parts(self, size: int | None) -> Iterator[Batch]:
        """At most `size` images at a time, of like numbers; three where one would be alone, as
        batch norm needs two. None = all."""
        number = 1 if size is None else min(ceil(len(self.y) / size), len(self.y) // 2)
        if number < 2:
            yield self
            return
        taught = [None] * number if self.taught is None else self.taught.tensor_split(number)
        for x, y, known in zip(*(c.tensor_split(number) for c in self[:2]), taught, strict=True):
            yield Batch(x, y, known, self.weight * len(y) / len(self.y))


class Objective:
    """The loss of a batch: of labels or a teacher, of one branch or two, with a penalty or none.

    A network without recursion has no shallow branch, and one without two comparable maps in a row
    has no penalty. So the networks of a search can share a recipe.

    Args:
        recipe: `mixup` to `mixed_depth` and `label_smoothing` count.
        model: what is trained.
        num_classes: of the images.
        device: where model and batches are.
        teacher: what replaces the labels, or None.

    Attributes:
        similarities: of each batch since `begin`, the penalty's sum before its weight.

    Randomness: the global generators of Python, NumPy and torch.
    """

    def __init__(
        self,
        recipe: Recipe,
        model: nn.Module,
        num_classes: int,
        device: torch.device,
        teacher: Teacher | None = None,
    ) -> None:
        self._recipe, self._model, self._device, self._teacher = recipe, model, device, teacher
        self._num_classes = num_classes
        self.begin(recipe)
        self._is_mixed = recipe.mixed_depth and has_shallow_branch(model)

    def begin(self, recipe: Recipe) -> None:
        """Begin an epoch, which mixes images as `recipe` says."""
        self._mixing = Mixing(recipe, self._num_classes, self._device)
        self.similarities: list[Tensor] = []

    def mixed(self, batch: Batch) -> Batch:
        """The batch with what a recipe mixes into it; draws on the host, so it is no part of a
        captured step."""
        x, y = self._mixing(batch.x, batch.y)
        return batch._replace(x=x, y=y)

    @property
    def is_capturable(self) -> bool:
        """Whether a CUDA graph can hold it: nothing of it is kept, and no other network asked."""
        return self._teacher is None and not self._recipe.similarity_penalty.weight

    def __call__(self, batch: Batch) -> Tensor:
        """Mean over images and branches, of a batch that is `mixed`."""
        penalty = self._recipe.similarity_penalty
        x, target = batch.x, batch.y
        branches, maps = self._forward(x)
        wanted = batch.taught
        if self._teacher is not None and wanted is None:
            wanted = self._teacher(x)
        losses = [self._criterion(each, target, wanted) for each in branches]
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).mean()
        if not penalty.weight:
            return loss
        similarity = similarity_penalty(maps, penalty.blocks, len(x)).to(loss.device)
        self.similarities.append(similarity.detach())
        return loss + penalty.weight * similarity

    def _forward(self, x: Tensor) -> tuple[list[Scores], list[Tensor]]:
        """Logits of the network and, in mixed depth, of its shallow branch; the network's maps."""
        model = self._model
        nothing: AbstractContextManager[list[Tensor]] = nullcontext([])
        is_penalised = bool(self._recipe.similarity_penalty.weight)
        recording = recorded_maps(model) if is_penalised else nothing
        keeping = kept_stem(model) if self._is_mixed else nothing
        is_split = self._teacher is not None and self._recipe.distill.kind == "hard"
        with autocast(self._device), both_scores(model, is_split):
            with recording as maps, keeping as stems:
                branches = [model(x)]
            if self._is_mixed:
                branches.append(shallow_logits(model, x, stems[0]))
        return [_pair(scores) for scores in branches], maps

    def _criterion(self, scores: Scores, target: Tensor, wanted: Tensor | None) -> Tensor:
        """Of one branch: against the teacher's logits, or labels, or both."""
        logits, distilled = scores
        distill = self._recipe.distill
        if wanted is not None and distill.kind == "soft":
            return soft_cross_entropy(logits, wanted, distill.temperature)
        if self._recipe.label_smoothing and not target.is_floating_point():  # mixed ones are it
            target = smoothed(target, logits, self._recipe.label_smoothing)
        loss = cross_entropy(logits, target)
        return loss if wanted is None else (loss + hard_cross_entropy(distilled, wanted)) / 2


def smoothed(y: Tensor, logits: Tensor, share: float) -> Tensor:
    """Classes `(B,)` as probabilities, of the shape and kind of `logits` `(B, classes)`.

    The `share` is spread over all classes. PyTorch's own smoothing is the same up to rounding, and
    takes twice as long for few classes.
    """
    spread = share / logits.shape[1]
    return torch.full_like(logits, spread).scatter_(1, y[:, None], 1 - share + spread)


@contextmanager
def both_scores(model: nn.Module, enable: bool) -> Iterator[None]:
    """Inside, a network with a distillation token gives the scores of both its tokens."""
    modules = model.modules() if enable else ()  # looking at each takes a tenth of a small step
    heads: list[Any] = [m for m in modules if hasattr(m, "distilled_training")]
    for head in heads:
        head.distilled_training = True
    try:
        yield
    finally:
        for head in heads:
            head.distilled_training = False


def _pair(scores: Tensor | Scores) -> Scores:
    """The scores that labels are for, and those that the teacher is for; mostly the same."""
    if isinstance(scores, tuple):
        return scores[0].float(), scores[1].float()
    return scores.float(), scores.float()
