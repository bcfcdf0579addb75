"""A chosen network in words, and as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vitnas.columns import columns
from vitnas.config.costs import EXACT, cost_of
from vitnas.config.one_line import one_line
from vitnas.cost.description import describe_table
from vitnas.errors import typed
from vitnas.records import TrialRecord
from vitnas.report.choice import ENOUGH, Picked
from vitnas.report.long_against import to_compare
from vitnas.report.longer import long_row
from vitnas.report.networks import network_line, network_lines
from vitnas.report.standing import estimate_error, expected_text, mean_text
from vitnas.report.tables import measured_columns
from vitnas.report.text import (
    NOTHING,
    count_text,
    duration_text,
    named_cost_text,
    percent_text,
    plural,
    signed_text,
)
from vitnas.run import Run


def choice_text(choice: Picked) -> str:
    """The choice for a terminal."""
    run, trial = choice.run, choice.trial
    parts = [_headline(choice), "", _numbers(run, trial), network_line(trial), ""]
    parts += [*describe_table(trial.network), "", *_beside_text(choice), *_long_text(choice)]
    parts += ["", _sure_text(choice), *_further_text(choice)]
    parts += [f"Export it: vitnas export {typed(run.path)} --trial {trial.number} --to my_network"]
    parts += _compare_text(choice)
    return "\n".join(parts)


def _headline(choice: Picked) -> str:
    among = plural(choice.number_fitting, "network")
    what = f"highest {choice.run.quality}" if choice.target.min_top1 is None else "fewest FLOPs"
    robust = ", each by the top-1 that it exceeds with 95 %" if choice.target.is_robust else ""
    wanted = choice.target.text()
    limits = f" with {wanted}" if wanted else ""
    return f"Trial {choice.trial.number} has the {what} of {among}{limits}{robust}."


def _numbers(run: Run, trial: TrialRecord) -> str:
    top1 = f"expected {run.quality} {expected_text(trial)} %, " if trial.expected else ""
    test = trial.mean_test_top1
    tested = "not scored on test" if test is None else f"{percent_text(test)} % on test"
    names = (*EXACT, *measured_columns(run))
    costs = [named_cost_text(name, cost_of(trial, name)) for name in names]
    return f"{top1}scored {mean_text(run, trial)} %, {tested}; {', '.join(costs)}"


def _beside_text(choice: Picked) -> list[str]:
    if not choice.neighbours:
        return ["It is alone on the front."]
    heads = ("beside it", "points", "FLOPs", "better with", "parameters", "network")
    lines = network_lines([choice.trial, *(one.trial for one in choice.neighbours)])[1:]
    rows = [
        (
            f"trial {one.trial.number}",
            signed_text(one.points),
            f"x{one.flops:.2f}",
            NOTHING if one.better is None else f"{one.better:.2f}",
            count_text(one.trial.num_params or None),
            line,
        )
        for one, line in zip(choice.neighbours, lines, strict=True)
    ]
    return columns([heads, *rows], left=(0, -1))


def _compare_text(choice: Picked) -> list[str]:
    """How to see whether it is better than a baseline once both are trained long."""
    commands = to_compare(choice.run, choice.trial.number)
    if not commands:
        return []
    question = (
        "Is it better than a baseline of like FLOPs, both trained long? The report says so after"
    )
    return [f"{question}:", *(f"  {command}" for command in commands)]


def _long_text(choice: Picked) -> list[str]:
    """A table for each setting: only trainings of one setting can be compared."""
    lines: list[str] = []
    for group in choice.long:
        rows = [long_row(choice.run, one) for one in group]
        cells = [
            (row["called"], row["top1"], row["test"], row["time"], row["trainings"]) for row in rows
        ]
        setting = f"{plural(group[0].epochs, 'epoch')} ({group[0].recipe})"
        heads = (f"trained long: {setting}", "scoring, %", "test, %", "time", "trainings")
        lines += ["", *columns([heads, *cells], left=(0,))]
    return lines


def _sure_text(choice: Picked) -> str:
    if choice.chance is None:
        return "How sure that is cannot be said: errors of top-1 are not known."
    if choice.target.min_top1 is not None:
        least = f"{choice.target.min_top1:g}"
        return f"Its true top-1 is at least {least} % with a probability of {choice.chance:.2f}."
    if choice.number_fitting == 1:
        return "It is the only one, so there is nothing to compare it with."
    text = f"It is the best of them with a probability of {choice.chance:.2f}"
    others = [one for one in choice.rivals if one.number != choice.trial.number]
    if others:
        listed = ", ".join(f"trial {one.number} ({one.chance:.2f})" for one in others)
        text += f". Others that may be: {listed}"
    return f"{text}."


def _further_text(choice: Picked) -> list[str]:
    if len(choice.further) < 2:  # it is sure enough as it is
        return []
    now = choice.further[0]
    made = Counter(trial.replicate_of for trial in choice.run.replicates)
    total = max(made[one.number] for one in choice.rivals) + choice.further[-1].times
    numbers = ", ".join(str(one.number) for one in choice.rivals)
    steps = [
        (
            f"{one.times} more",
            f"{one.chance:.2f}",
            f"{one.loss:.2f}",
            duration_text(one.seconds),
        )
        for one in choice.further[1:]
    ]
    heads = ("trainings of each", "best with", "points lost", "their time")
    return [
        f"Of these ({numbers}), the one with the highest expected top-1 is {now.loss:.2f} points "
        "below the best on average. After further trainings:",
        "",
        *columns([heads, *steps]),
        "",
        *_unsure_text(choice),
        f"The search's own command with --replicates {total} makes them, and those of all others "
        f"that may be on the front{_others_text(choice, made, total)}.",
    ]


def _unsure_text(choice: Picked) -> list[str]:
    """What follows where the most trainings of the table are too few."""
    last = choice.further[-1]
    if last.chance >= ENOUGH:
        return []
    return [
        f"Even {last.times} more of each leave that unsure (below {ENOUGH:g}): these networks are "
        f"nearly equal, and whichever is chosen loses {last.loss:.2f} points on average then.",
        "",
    ]


def _others_text(choice: Picked, made: Mapping[int | None, int], total: int) -> str:
    """How many trainings the command makes besides, and how long these take."""
    run, rivals = choice.run, {one.number for one in choice.rivals}
    others = [t for t in (*run.confident, *run.plausible) if t.number not in rivals]
    more = [(max(0, total - made[trial.number]), trial) for trial in others]
    number = sum(times for times, _ in more)
    if not number:
        return ""
    times = [trial.seconds for times, trial in more if times]
    known = None if None in times else sum(n * (trial.seconds or 0.0) for n, trial in more)
    takes = "" if known is None else f", {duration_text(known)}"
    return f" (now {plural(len(others), 'network')}: {plural(number, 'further training')}{takes})"


def choice_json(choice: Picked) -> dict[str, Any]:
    """The choice as plain values; unknown ones are None."""
    trial = choice.trial
    return {
        "trial": trial.number,
        "network": one_line(trial.network),
        "number_fitting": choice.number_fitting,
        "expected_top1": trial.estimate,
        "error": estimate_error(choice.run, trial),
        "top1": trial.top1,
        "float_top1": trial.float_top1,
        "test_top1": trial.mean_test_top1,
        **{name: cost_of(trial, name) for name in (*EXACT, *measured_columns(choice.run))},
        "chance": choice.chance,
        "rivals": [vars(one) for one in choice.rivals],
        "further": [vars(one) for one in choice.further],
        "neighbours": [
            {
                "trial": one.trial.number,
                "points": one.points,
                "flops_ratio": one.flops,
                "better": one.better,
            }
            for one in choice.neighbours
        ],
        "long": [asdict(one) for group in choice.long for one in group],
    }
