"""One step of an optimizer on a batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vitnas.config.recipe import Recipe
from vitnas.training.objective import Batch, Objective
from vitnas.training.optim import clip_gradients, is_capturable, make_optimizer, set_rate
from vitnas.training.ranks import Ranks
from vitnas.training.replayed import Replayed


class TrainingStep:
    """Forward and backward pass, clipping and the optimizer, of a network and its moving average.

    On a CUDA device a step is captured and replayed as a whole (see `Replayed`). Mixing and the
    moving average change from step to step on the host, so they stay outside. Steps in several
    parts or of several processes are not captured, nor are those that checkpoint gradients, of an
    optimizer or an objective that cannot be.

    Args:
        model: the network, on `device`.
        recipe: how it is trained.
        objective: the loss of it.
        device: where batches are.
        ranks: the processes that train it together.

    Attributes:
        optimizer: over the network's parameters.
        ema: timm's moving average of the network, or None.
        done: steps since the training began, which the average's warm-up reads.
    """

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        objective: Objective,
        device: torch.device,
        ranks: Ranks,
    ) -> None:
        self._model, self._recipe, self._device, self._ranks = model, recipe, device, ranks
        self.optimizer = make_optimizer(
            model, recipe.lr, recipe.weight_decay, recipe.optimizer, recipe.layer_decay
        )
        self._parameters = list(model.parameters())
        self._objective = objective
        self._loss = ranks.together(objective, model)
        is_captured = (
            device.type == "cuda"
            and ranks.size == 1
            and not recipe.grad_checkpointing
            and objective.is_capturable
            and is_capturable(self.optimizer)
        )
        self._replayed = Replayed() if is_captured else None
        self.ema = _average(model, recipe.ema_decay)
        self.done = 0

    def __call__(self, batch: Batch, rate: float) -> Tensor:
        """Take it with the learning rate `rate`; the sum of the images' losses, on the device."""
        set_rate(self.optimizer, rate, self._parameters[0].device if self._replayed else None)
        parts = list(batch.parts(self._recipe.micro_batch_size))
        if self._replayed and len(parts) == 1:
            x, y, *_ = self._objective.mixed(batch)
            total = self._replayed(self._whole, x, y) * len(batch.y)
        else:
            total = self._in_parts(parts)
        self.done += 1
        if self.ema is not None:
            self.ema.update(self._model, step=self.done)
        return total

    def call(self) -> None:
        """Capture no step from now on."""
        self._replayed = None

    def _in_parts(self, parts: list[Batch]) -> Tensor:
        """A step of one part or more."""
        self._forget()
        total = torch.zeros((), device=self._device)
        for part in parts:
            with self._ranks.adding(self._loss, part is parts[-1]):
                loss = self._loss(self._objective.mixed(part))
            (loss if part.weight == 1 else loss * part.weight).backward()
            total += loss.detach() * len(part.y)
        self._apply()
        return total

    def _whole(self, x: Tensor, y: Tensor) -> Tensor:
        """A step of one part that is mixed already; the mean loss."""
        self._forget()
        loss = self._loss(Batch(x, y))
        loss.backward()
        self._apply()
        return loss.detach()

    def _forget(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def _apply(self) -> None:
        """Change the weights along their gradients."""
        if self._recipe.grad_clip:
            clip_gradients(self._parameters, self._recipe.grad_clip)
        self.optimizer.step()


def _average(model: nn.Module, decay: float) -> Any:
    """timm's moving average of the weights, which warms up; None for a decay of 0."""
    if not decay:
        return None
    from timm.utils import ModelEmaV3

    return ModelEmaV3(model, decay=decay, use_warmup=True)
