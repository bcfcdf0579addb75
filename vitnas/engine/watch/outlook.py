"""What a session of a search says before its first training: how much is to do, and how long."""

from __future__ import annotations

from vitnas.durations import in_turns, span
from vitnas.words import plural


def outlook(
    num_workers: int,
    num_trials: int | None,
    num_ended: int,
    epochs: int,
    *,
    seconds: float | None = None,
    num_baselines: int = 0,
    baseline_seconds: float | None = None,
) -> str:
    """How many trainings are left, and about how long they take.

    Args:
        num_workers: how many train at a time.
        num_trials: how many trainings the run shall have; None = no bound.
        num_ended: how many it has from earlier sessions.
        epochs: of one training.
        seconds: of one training; None where it is not known.
        num_baselines: how many follow.
        baseline_seconds: of one worker for all of them, the first learning rates of each family
            among them; None where it is not known.
    """
    left = None if num_trials is None else max(0, num_trials - num_ended)
    if left == 0:
        text = "the trial has ended" if num_trials == 1 else f"all {num_trials} trials have ended"
    else:
        workers, trainings = plural(num_workers, "worker"), _trainings(num_trials, num_ended)
        text = f"starting {workers} for {trainings} of {plural(epochs, 'epoch')}"
    if left and seconds:
        text += f", about {span(in_turns(left, seconds, num_workers))} in all"
    if not num_baselines:
        return text
    text += f", then {plural(num_baselines, 'baseline')}"
    return f"{text}, about {span(baseline_seconds / num_workers)}" if baseline_seconds else text


def _trainings(num_trials: int | None, num_ended: int) -> str:
    if num_trials is None:
        return "any number of further trainings" if num_ended else "any number of trainings"
    whole = plural(num_trials, "training")
    return f"the last {num_trials - num_ended} of {whole}" if num_ended else whole
