"""The head of a report: its title, the run in two sentences, the key numbers."""

from __future__ import annotations

from collections.abc import Sequence

from vitnas.config.costs import COSTS
from vitnas.config.data import DataConfig
from vitnas.config.files import validate
from vitnas.errors import VitnasError
from vitnas.records import TrialRecord
from vitnas.report.facts import space_name
from vitnas.report.marks import and_text
from vitnas.report.text import duration_text, named_cost_text, percent_text, plural
from vitnas.run import Run


def title(run: Run) -> str:
    """The folder's name, and the space's name if it is different."""
    folder, space = run.path.name, space_name(run)
    return folder if not space or space == folder else f"{folder} – {space}"


def lead(run: Run) -> str:
    """The run in two sentences."""
    ended = sum(trial.is_ended_here for trial in run.trials)
    text = f"{plural(len(run.front), 'network')} on the Pareto front of expected {run.quality} "
    text += f"against {and_text(run.costs)}, "
    taken = sum(trial.taken for trial in run.trials)
    again = sum(trial.outcome.is_trial and not trial.taken for trial in run.replicates)
    made = [f"{ended:,} trained"]
    made += [f"{taken:,} taken over"] if taken else []
    made += [plural(again, "replicate")] if again else []
    *most, last = made
    listed = f"{', '.join(most)} and {last}" if most else last
    text += f"out of {plural(len(run.trials), 'candidate')}, {listed}"
    text += f" ({run.num_trials:,} asked for)." if ended < run.num_trials else "."
    told = run.environment
    parts = [_images(run)] if told.data.name else []
    if told.proxy.epochs is not None:
        parts.append(f"{plural(told.proxy.epochs, 'epoch')} a network")
    if told.seed is not None:
        parts.append(f"seed {told.seed}")
    return f"{text} {', '.join(parts)}." if parts else text


def _images(run: Run) -> str:
    """What people call the images; the data set where the space does not tell."""
    try:
        return validate(DataConfig, run.space["data"]).called
    except (VitnasError, KeyError):
        return str(run.environment.data.name)


def key_numbers(run: Run) -> list[dict[str, str]]:
    """Best, knee and cheapest member of the front, and the time of all trainings."""
    members, knee = run.front, run.knee
    if not members or knee is None:
        return []
    marked = [
        (f"Best expected {run.quality}", max(members, key=lambda trial: trial.estimate or 0.0))
    ]
    if len(members) > 2:
        marked.append(("Knee of the front", knee))
    if len(members) > 1:
        marked += _cheapest(members, run.costs)
    labels: dict[int, list[str]] = {}
    for label, trial in marked:
        labels.setdefault(trial.number, []).append(label)
    shown = {trial.number: trial for _, trial in marked}
    here = [trial for trial in (*run.trials, *run.replicates) if not trial.taken]
    seconds = sum(trial.seconds or 0.0 for trial in here)
    trained = sum(trial.outcome.is_trial for trial in here)
    cost = duration_text(seconds) if seconds else f"{trained:,}"
    return [
        *(_key(_joined(labels[number]), trial, run.costs) for number, trial in shown.items()),
        {
            "label": "Time in trainings" if seconds else "Trainings",
            "value": cost,
            "detail": f"{plural(trained, 'training')}, added up over workers",
        },
    ]


def _cheapest(
    members: Sequence[TrialRecord], costs: Sequence[str]
) -> list[tuple[str, TrialRecord]]:
    """The cheapest member; with several costs, one for each cost."""
    if len(costs) == 1:
        return [("Cheapest on the front", members[0])]
    return [
        (
            f"{COSTS[cost].best} {COSTS[cost].noun}",
            min(members, key=lambda t: (*t.minimized([cost]), t.number)),
        )
        for cost in costs
    ]


def _joined(labels: Sequence[str]) -> str:
    """`Knee of the front, cheapest on the front`: one network may be several of them."""
    first, *others = labels
    return ", ".join([first, *(label[:1].lower() + label[1:] for label in others)])


def _key(label: str, trial: TrialRecord, costs: Sequence[str]) -> dict[str, str]:
    spent = (
        named_cost_text(cost, amount)
        for cost, amount in zip(costs, trial.costs(costs), strict=True)
    )
    detail = f"{', '.join(spent)}, trial {trial.number}"
    return {"label": label, "value": f"{percent_text(trial.estimate)} %", "detail": detail}
