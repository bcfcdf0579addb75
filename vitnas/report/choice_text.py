"""A chosen network in words, and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from vitnas.columns import columns
from vitnas.config.costs import COSTS, EXACT, cost_of
from vitnas.config.one_line import one_line
from vitnas.cost.description import describe_table
from vitnas.errors import typed
from vitnas.records import TrialRecord
from vitnas.report.choice import Picked
from vitnas.report.long_against import to_compare, to_fine_tune
from vitnas.report.longer import long_row
from vitnas.report.networks import network_line, network_lines
from vitnas.report.outlook import ENOUGH, Outlook
from vitnas.report.standing import estimate_error, expected_text, mean_text
from vitnas.report.tables import measured_columns
from vitnas.report.text import (
    NOTHING,
    cost_text,
    count_text,
    duration_text,
    listed,
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
    parts += ["", _sure_text(choice), *_outlook_text(choice)]
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
    measured = measured_columns(choice.run)
    costs = [COSTS[name].head for name in measured]
    heads = ("beside it", "points", "FLOPs", "better with", "parameters", *costs, "network")
    lines = network_lines([choice.trial, *(one.trial for one in choice.neighbours)])[1:]
    rows = [
        (
            f"trial {one.trial.number}",
            signed_text(one.points),
            f"x{one.flops:.2f}",
            NOTHING if one.better is None else f"{one.better:.2f}",
            count_text(one.trial.num_params or None),
            *(cost_text(name, cost_of(one.trial, name)) for name in measured),
            line,
        )
        for one, line in zip(choice.neighbours, lines, strict=True)
    ]
    return columns([heads, *rows], left=(0, -1))


def _compare_text(choice: Picked) -> list[str]:
    """How to see whether it is better than a baseline once both are trained long."""
    run, number = choice.run, choice.trial.number
    plain = (
        "Is it better than a baseline of like FLOPs, both trained long? The report says so after:"
    )
    published = "Is it better than a network of timm, by name, that starts from published weights?"
    lines: list[str] = []
    for question, command in (
        (plain, to_compare(run, number)),
        (published, to_fine_tune(run, number)),
    ):
        lines += [question, f"  {command}"] if command else []
    return lines


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


def _outlook_text(choice: Picked) -> list[str]:
    """What more replicates would tell, and how to make them."""
    outlook = choice.outlook
    if outlook is None:  # it is sure enough as it is
        return []
    now, *steps = outlook.steps
    rows = [
        (
            str(one.replicates),
            f"{one.chance:.2f}",
            f"{one.loss:.2f}",
            str(one.trainings),
            duration_text(one.seconds),
        )
        for one in steps
    ]
    is_one = choice.target.min_top1 is not None
    heads = (
        "--replicates",
        "told rightly with" if is_one else "best with",
        "points off" if is_one else "points lost",
        "further trainings",
        "their time",
    )
    loses = f"The one with the highest expected top-1 is {now.loss:.2f} points below the best"
    command = f"--replicates {steps[-1].replicates}{' --replicate-all' * outlook.of_all}"
    baselines = ", and those of the baselines that decide" * bool(choice.run.baselines)
    return [
        *([] if is_one else [f"{loses} on average."]),
        f"{_trained_text(outlook)} What more of that would tell:",
        "",
        *columns([heads, *rows]),
        "",
        *_unsure_text(choice, outlook),
        f"The search's own command with {command} makes these trainings{baselines}.",
    ]


def _trained_text(outlook: Outlook) -> str:
    """Which of the networks in question are trained again."""
    rule = "--replicates trains again what may be on the front"
    but = ", but not " + listed([f"trial {n}" for n in outlook.left]) if outlook.left else ""
    if outlook.of_all:
        besides = but or ", but not networks of a small chance"
        return f"{rule}{besides}; with --replicate-all it trains every network again."
    return f"{rule}{but}."


def _unsure_text(choice: Picked, outlook: Outlook) -> list[str]:
    """What follows where the most replicates of the table are too few."""
    if outlook.is_enough:
        return []
    last, least = outlook.steps[-1], choice.target.min_top1
    why = (
        "these networks are nearly equal, and whichever is chosen after the trainings above loses "
        f"{last.loss:.2f} points on average"
        if least is None
        else f"its true top-1 is close to {least:g} %"
    )
    most = f"--replicates {last.replicates} --replicate-all"
    return [f"Even {most} leaves that unsure (below {ENOUGH:g}): {why}.", ""]


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
        "outlook": None if choice.outlook is None else asdict(choice.outlook),
        "neighbours": [
            {
                "trial": one.trial.number,
                "points": one.points,
                "flops_ratio": one.flops,
                "better": one.better,
                **{name: cost_of(one.trial, name) for name in measured_columns(choice.run)},
            }
            for one in choice.neighbours
        ],
        "long": [asdict(one) for group in choice.long for one in group],
    }
