"""What a back end does with a worker's message; the same for every back end."""

from __future__ import annotations

from vitnas.engine.controller import Controller, Decision
from vitnas.engine.weights import FrontWeights
from vitnas.engine.worker import EpochMessage


class Steering:
    """Hands messages to the controller and keeps the weights of front members.

    Args:
        controller: the run's.
        weights: where the weights of front members are kept.
    """

    def __init__(self, controller: Controller, weights: FrontWeights) -> None:
        self.controller, self.weights = controller, weights

    def take(self, number: int, message: EpochMessage) -> Decision:
        """Take a message of trial `number`; STOP means that the trial has ended."""
        if message.outcome is not None:
            self.controller.fail(
                number,
                message.outcome,
                message.error,
                seconds=round(message.seconds, 3),
                device=message.device,
            )
            return Decision.STOP
        decision = self.controller.report(number, message.epoch, message.top1)
        last = message.epoch >= self.controller.epochs
        if decision is Decision.CONTINUE and not last:
            return Decision.CONTINUE
        if last and message.weights is not None:
            self.weights.put(number, message.weights)
        self.controller.finish(number, seconds=message.seconds, device=message.device)
        if last:
            self.weights.keep_front(self.controller.trials)
        return Decision.STOP
