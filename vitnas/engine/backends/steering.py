"""What a back end does with a worker's message; the same for every back end."""

from __future__ import annotations

from vitnas.engine.backends.worker import EpochMessage
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import Decision
from vitnas.engine.store.weights import FrontWeights
from vitnas.records import Outcome


class Steering:
    """Hands messages to the controller and keeps the weights of front members.

    Args:
        controller: the run's.
        weights: where the weights of front members are kept.
        trial_seconds: how long a training may take; None = as long as it likes.
    """

    def __init__(
        self, controller: Controller, weights: FrontWeights, trial_seconds: float | None = None
    ) -> None:
        self.controller, self.weights = controller, weights
        self.trial_seconds = trial_seconds

    def take(self, number: int, message: EpochMessage) -> Decision:
        """Take a message of trial `number`; STOP means that the trial has ended."""
        result = {"seconds": round(message.seconds, 3), "device": message.device}
        if message.outcome is not None:
            self.controller.fail(number, message.outcome, message.error, **result)
            return Decision.STOP
        if message.measured is not None:
            costs, device = message.measured.costs, message.measured.device
            return self.controller.measured(number, costs, device)
        decision = self.controller.report(number, message.epoch, message.top1)
        last = message.epoch >= self.controller.epochs
        if decision is Decision.CONTINUE and not last:
            if not self._is_late(message.seconds):
                return Decision.CONTINUE
            self.controller.fail(number, Outcome.TIMEOUT, self._late(message.seconds), **result)
            return Decision.STOP
        if last and message.weights is not None and self._wants_weights(number):
            self.weights.put(number, message.weights)
        self.controller.finish(number, seconds=message.seconds, device=message.device)
        if last:
            self.weights.keep_front(self.controller.trials, self.controller.costs)
        return Decision.STOP

    def lose(self, number: int, reason: str) -> None:
        """Trial `number` lost its worker; a worker that was late has been ended for that."""
        seconds = self.controller.elapsed(number)
        if self._is_late(seconds):
            self.controller.fail(number, Outcome.TIMEOUT, self._late(seconds), seconds=seconds)
        else:
            self.controller.interrupt(number, reason)

    def _wants_weights(self, number: int) -> bool:
        """Those of a network's own training are enough."""
        original = self.controller.trials[number].replicate_of
        return original is None or not self.weights.has(original)

    def _is_late(self, seconds: float) -> bool:
        return self.trial_seconds is not None and seconds >= self.trial_seconds

    def _late(self, seconds: float) -> str:
        return f"not done after {seconds:.0f} s; a training may take {self.trial_seconds:g} s"
