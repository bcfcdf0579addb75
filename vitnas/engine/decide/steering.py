"""What a back end does with a worker's message; the same for every back end."""

from __future__ import annotations

from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import Decision, EpochDone, Failure, Measured, Message
from vitnas.engine.store.weights import KeptWeights
from vitnas.records import Outcome


class Steering:
    """Hands messages to the controller and keeps the weights of front members.

    Args:
        controller: the run's.
        weights: where the weights of front members are kept.
        trial_seconds: how long a training may take; None = no bound.
    """

    def __init__(
        self, controller: Controller, weights: KeptWeights, trial_seconds: float | None = None
    ) -> None:
        self.controller, self.weights = controller, weights
        self.trial_seconds = trial_seconds

    def take(self, number: int, message: Message) -> Decision:
        """Take a message of trial `number`; STOP means that the trial has ended."""
        match message:
            case Measured(costs, device):
                return self.controller.measured(number, costs, device)
            case EpochDone():
                return self._after(number, message)
            case Failure(outcome, error, seconds, device):
                self._fail(number, outcome, error, seconds, device)
                return Decision.STOP

    def _after(self, number: int, done: EpochDone) -> Decision:
        """Whether a training continues after an epoch. If it does not, it is ended here."""
        decision = self.controller.report(number, done.epoch, done.top1)
        is_last = done.epoch >= self.controller.epochs
        if decision is Decision.CONTINUE and not is_last:
            if not self._is_late(done.seconds):
                return Decision.CONTINUE
            late = self._late(done.seconds)
            self._fail(number, Outcome.TIMEOUT, late, done.seconds, done.device)
            return Decision.STOP
        if is_last and done.weights is not None:
            self.weights.put(number, done.weights)
        self.controller.finish(
            number, seconds=done.seconds, device=done.device, float_top1=done.float_top1
        )
        if is_last:
            self.weights.clean(self.controller.trials, self.controller.costs)
        return Decision.STOP

    def _fail(self, number: int, outcome: Outcome, error: str, seconds: float, device: str) -> None:
        self.controller.fail(number, outcome, error, seconds=round(seconds, 3), device=device)

    def lose(self, number: int, reason: str) -> None:
        """Trial `number` lost its worker; a worker that was late has been ended for that."""
        seconds = self.controller.elapsed(number)
        if self._is_late(seconds):
            self.controller.fail(number, Outcome.TIMEOUT, self._late(seconds), seconds=seconds)
        else:
            self.controller.interrupt(number, reason)

    def _is_late(self, seconds: float) -> bool:
        return self.trial_seconds is not None and seconds >= self.trial_seconds

    def _late(self, seconds: float) -> str:
        return f"not done after {seconds:.0f} s; a training may take {self.trial_seconds:g} s"
