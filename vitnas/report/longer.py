"""What the long trainings of a run's networks say: a table, a mark, and how well it ranked them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vitnas.calibration.agreement import Networks, Tau, kendall_tau
from vitnas.longer import FILE_NAME, LongResult, trials_of
from vitnas.report.standing import expected_text
from vitnas.report.text import NOTHING, count_text, duration_text, listed, percent_text, plural
from vitnas.run import Run

LEAST = 5
"""Networks below which nothing is said: of four, one ranking in 24 is perfect by chance."""


@dataclass(frozen=True)
class LongAgreement:
    """How far a run's ranking agrees with that after its long trainings of one setting.

    Attributes:
        num_networks: that were trained so.
        epochs, recipe: of these trainings.
        on_test: whether they are judged by test top-1, else by that on the scoring images.
        tau: Kendall's tau-b between expected top-1 and top-1 after the long training, with a 95 %
            interval; None below `LEAST` networks, or where one side has no order.
        flops_tau: the same for FLOPs in place of expected top-1.
        num_others: long trainings of other settings, which are not compared.
        unread: lines of the file that do not count, and why.
    """

    num_networks: int = 0
    epochs: int = 0
    recipe: str = ""
    on_test: bool = False
    tau: Tau | None = None
    flops_tau: float | None = None
    num_others: int = 0
    unread: tuple[str, ...] = ()


def agreement_of(run: Run) -> LongAgreement | None:
    """The agreement by the setting of the most networks; None where no trial's was trained long."""
    found, known = run.long, {trial.called: trial for trial in run.complete}
    ours = (
        tuple(one for one in trials_of(group) if one.called in known) for group in found.settings
    )
    settings = sorted(filter(None, ours), key=len, reverse=True)
    if not settings:
        return LongAgreement(unread=found.unread) if found.unread else None
    group, *others = settings
    trials = [known[one.called] for one in group]
    tests = [one.test_top1 for one in group if one.test_top1 is not None]
    on_test = len(tests) == len(group)
    after = tests if on_test else [one.top1 for one in group]
    before, flops = [trial.estimate or 0.0 for trial in trials], [trial.flops for trial in trials]
    is_enough = len(trials) >= LEAST and kendall_tau(before, after) is not None
    return LongAgreement(
        num_networks=len(trials),
        epochs=group[0].epochs,
        recipe=group[0].recipe,
        on_test=on_test,
        tau=Networks(flops).judge([(before, after)]).overall if is_enough else None,
        flops_tau=kendall_tau(flops, after) if is_enough else None,
        num_others=sum(len(one.seeds) for other in others for one in other),
        unread=found.unread,
    )


def agreement_text(found: LongAgreement | None) -> str:
    """The agreement in a few sentences; empty where there is nothing to say."""
    if found is None:
        return ""
    parts = [_said(found)] if found.num_networks else []
    if found.num_others:
        have = "has" if found.num_others == 1 else "have"
        other = plural(found.num_others, "other long training")
        parts.append(f"{other} {have} another recipe or other images, and cannot be compared.")
    if found.unread:
        parts.append(f"Not counted in {FILE_NAME}: {listed(found.unread)}.")
    return " ".join(parts)


def _said(found: LongAgreement) -> str:
    were = "was" if found.num_networks == 1 else "were"
    text = (
        f"{plural(found.num_networks, 'network')} {were} trained long, for "
        f"{plural(found.epochs, 'epoch')} ({found.recipe})"
    )
    if found.num_networks < LEAST:
        return (
            f"{text}: too few to say how well the short trainings ranked them ({LEAST} can tell)."
        )
    if found.tau is None:
        return f"{text}. They have no order, so they do not say how well they were ranked."
    images = "test" if found.on_test else "scoring"
    text += (
        ". Kendall's tau between expected top-1, by which this report ranks them, and top-1 on "
        f"the {images} images after the long training is {found.tau.value:.2f} "
        f"({_interval(found.tau)})."
    )
    if found.flops_tau is not None:
        text += f" Ranking by FLOPs alone gives {found.flops_tau:.2f}."
    return text + " Somebody chose these networks, so they say little of the others."


def _interval(tau: Tau) -> str:
    """The interval in words; a bootstrap has none where every resample has the same tau."""
    if tau.low == tau.high:
        return "no interval: a bootstrap of networks in perfect order shows none"
    return f"95 % interval {tau.low:.2f} to {tau.high:.2f}"


def long_rows(run: Run) -> list[dict[str, Any]]:
    """The table: a row for each network, learning rate and setting, as text."""
    return [long_row(run, one) for group in run.long.settings for one in group]


def flops_of(run: Run, one: LongResult) -> int:
    """Multiply-adds of one image of a network that was trained long."""
    found = next((trial.flops for trial in run.complete if trial.number == one.trial), None)
    return found or one.flops or 0


def long_row(run: Run, one: LongResult) -> dict[str, Any]:
    """A row of the table: a trial or a baseline after its long trainings of one setting."""
    trial = next((trial for trial in run.complete if trial.number == one.trial), None)
    short = next((percent_text(b.top1) for b in run.baselines if b.key == one.key), NOTHING)
    if trial is not None:
        short = expected_text(trial)
    return {
        "number": one.trial,
        "called": one.started,
        "short": short,
        "flops": count_text(flops_of(run, one)),
        "recipe": one.recipe,
        "epochs": f"{one.epochs:,}",
        "trainings": str(len(one.seeds)),
        "top1": percent_text(one.top1),
        "test": percent_text(one.test_top1),
        "time": duration_text(one.seconds),
    }


LONG_COLUMNS = ("long_top1_percent", "long_test_top1_percent", "long_epochs", "long_trainings")


def long_columns(run: Run, number: int) -> dict[str, Any]:
    """What the tables tell of a trial's long trainings, the mean over its seeds."""
    one = run.long.of(number)
    if one is None:
        return {}
    return {
        "long_top1_percent": round(one.top1, 4),
        "long_test_top1_percent": None if one.test_top1 is None else round(one.test_top1, 4),
        "long_epochs": one.epochs,
        "long_trainings": len(one.seeds),
    }
