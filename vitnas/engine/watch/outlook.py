"""What a session of a search says before its first training: how much is to do, and how long."""

from __future__ import annotations

from vitnas.durations import span


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
        baseline_seconds: of one worker for all of them; None where it is not known.
    """
    if num_trials is not None and num_ended >= num_trials:
        text = f"all {num_trials} trials have ended"
    else:
        workers = f"{num_workers} worker{'s' * (num_workers > 1)}"
        trainings = f"training{'s' * (num_trials != 1)} of {epochs} epoch{'s' * (epochs != 1)}"
        text = f"starting {workers} for {_number(num_trials, num_ended)} {trainings}"
    if num_trials is not None and (left := num_trials - num_ended) > 0 and seconds:
        text += f", about {span(left * seconds / min(left, num_workers))} in all"
    if not num_baselines:
        return text
    text += f", then {num_baselines} baseline{'s' * (num_baselines > 1)}"
    return f"{text}, about {span(baseline_seconds / num_workers)}" if baseline_seconds else text


def _number(num_trials: int | None, num_ended: int) -> str:
    if num_trials is None:
        return "any number of further" if num_ended else "any number of"
    return f"the last {num_trials - num_ended} of {num_trials}" if num_ended else f"{num_trials}"
