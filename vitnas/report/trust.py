"""How far the ranking of a run can be trusted, in numbers from the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot, isfinite, sqrt
from statistics import fmean, median_low

import numpy as np

from vitnas.calibration.agreement import kendall_tau
from vitnas.calibration.result import Calibration
from vitnas.errors import RunError
from vitnas.noise import binomial_error
from vitnas.records import Outcome, TrialRecord
from vitnas.report.calibrated import calibration_of
from vitnas.report.longer import LongAgreement, agreement_of
from vitnas.report.standing import estimated, off_front
from vitnas.report.tables import BinRow, flops_bins, measured_costs
from vitnas.report.tested import Tested, compare_by_test
from vitnas.run import Run

MOST_FOR_TAU = 1500
_EPOCH_SHARES = (1 / 6, 1 / 4, 1 / 3, 1 / 2, 3 / 4)
_FEWEST_EPOCHS = 3  # that have a last third


@dataclass(frozen=True)
class Trust:
    """The limits of the ranking. None means that the run does not say it.

    Attributes:
        num_images: number of images of the scoring split.
        front_size: number of members of the front.
        standard_error: binomial standard error of the front's median top-1, in points.
        close_neighbours: number of neighbours on the front whose top-1 differ by less than one
            standard error of their difference.
        ordered: probability that two neighbours on the front have the order of their expected
            top-1 in truth, too, a mean over neighbours; None without replicates.
        taus: (epoch, Kendall's tau-b between top-1 after this epoch and after the last one).
        flops_tau: Kendall's tau-b between FLOPs and top-1 after the last epoch.
        late_gain: points of top-1 that the front's members gained in the last third of their
            epochs, a mean over them; None below three epochs.
        lr: peak learning rate of the trials.
        is_tuned: whether the recipe was tuned before them.
        rate_factors: the learning rate that each family of baselines has found for itself, in
            multiples of `lr`: the middle one of its members that were trained at several. That of
            the most accurate baseline comes first.
        num_ranked: number of complete trials from which the taus are computed.
        num_complete: number of all complete trials.
        epochs: epochs of a complete trial.
        num_stopped: number of trials stopped early. No tau includes them.
        starved: bins of FLOPs (see `flops_bins`) in which trials were stopped and none completed.
        tested: what the test images say of the front; None if no member has a test top-1.
        measured: costs that were measured for the front's members.
        num_devices: number of devices on which these costs were measured.
        num_repeated: number of networks that were trained to the end more than once.
        num_replicates: number of replicates, also of those that did not reach the end.
        num_lost_replicates: number of replicates that did not reach the end.
        spread: scatter of a network's trainings as a multiple of the binomial error; None without
            replicates.
        num_confident: number of front members that are on it with a probability of at least 0.9.
        num_plausible: number of the other front members.
        num_plausible_off: number of networks that are not on the front, but on the
            true one with a probability of at least 0.1.
        calibration: the calibration in the run's folder; an error where it cannot be used.
        long: what long trainings of its networks say; None where there are none.
        int8_minus_float: where top-1 is in int8: mean over the front of it minus top-1 in float, in
            points; else None.
    """

    num_images: int | None
    front_size: int
    standard_error: float | None
    close_neighbours: int | None
    taus: tuple[tuple[int, float], ...]
    flops_tau: float | None
    num_ranked: int
    num_complete: int
    epochs: int
    num_stopped: int
    starved: tuple[BinRow, ...]
    tested: Tested | None
    measured: tuple[str, ...]
    num_devices: int
    num_repeated: int
    num_replicates: int
    num_lost_replicates: int
    spread: float | None
    num_confident: int
    num_plausible: int
    num_plausible_off: int
    calibration: Calibration | RunError | None = None
    ordered: float | None = None
    long: LongAgreement | None = None
    late_gain: float | None = None
    lr: float | None = None
    is_tuned: bool = False
    rate_factors: tuple[float, ...] = ()
    int8_minus_float: float | None = None


def assess(run: Run) -> Trust:
    """Everything about the ranking that is known without further trainings."""
    members = run.front
    scores = sorted(trial.top1 or 0.0 for trial in members)
    images = run.environment.data.num_val_images or None
    error = binomial_error(float(np.median(scores)), images) if images and scores else None
    ranked = _ranked(run)
    epochs = len(ranked[0].curve) if ranked else 0
    return Trust(
        num_images=images,
        front_size=len(members),
        standard_error=error,
        close_neighbours=_close(run) if images else None,
        taus=_taus(ranked),
        flops_tau=_tau_of_flops(ranked),
        num_ranked=len(ranked),
        num_complete=len(run.complete),
        epochs=epochs,
        num_stopped=run.count(Outcome.STOPPED),
        starved=tuple(row for row in flops_bins(run) if row.stopped and not row.complete),
        tested=compare_by_test(run),
        measured=measured_costs(members),
        num_devices=len({trial.measured_on for trial in members if trial.measured}),
        num_repeated=sum(bool(trial.replicates) for trial in run.complete),
        num_replicates=sum(trial.outcome.is_trial for trial in run.replicates),
        num_lost_replicates=sum(
            trial.outcome.is_trial and trial.outcome is not Outcome.COMPLETE
            for trial in run.replicates
        ),
        spread=sqrt(run.noise.dispersion) if run.noise and run.noise.is_measured else None,
        num_confident=sum(run.standing(trial) == "confident" for trial in members),
        num_plausible=sum(run.standing(trial) != "confident" for trial in members),
        num_plausible_off=len(off_front(run)),
        calibration=_calibration(run),
        ordered=_ordered(run),
        long=agreement_of(run),
        late_gain=_late_gain(members),
        lr=run.lr,
        is_tuned=bool(run.environment.tuned),
        rate_factors=_rate_factors(run),
        int8_minus_float=_int8_minus_float(members),
    )


def _calibration(run: Run) -> Calibration | RunError | None:
    try:
        return calibration_of(run)
    except RunError as error:
        return error


def _close(run: Run) -> int:
    """Number of neighbours that differ by less than the standard error of their difference."""
    pairs = pairwise(estimated(run, trial) for trial in run.front)
    return sum(abs(b.top1 - a.top1) < hypot(a.error, b.error) for a, b in pairs)


def _rate_factors(run: Run) -> tuple[float, ...]:
    if run.lr is None:
        return ()
    best: dict[str, float] = {}
    for one in run.baselines:
        best[one.family] = max(best.get(one.family, 0.0), one.top1 or 0.0)
    found: dict[str, list[float]] = {}
    for one in run.baselines:
        if one.rates:
            found.setdefault(one.family, []).append(one.lr / run.lr)
    families = sorted(found, key=lambda family: -best[family])
    return tuple(median_low(found[family]) for family in families)


def _late_gain(members: Sequence[TrialRecord]) -> float | None:
    """Of their own trainings, without replicates."""
    curves = [trial.curve for trial in members if trial.epochs >= _FEWEST_EPOCHS]
    gains = [curve[-1] - curve[round(2 * len(curve) / 3) - 1] for curve in curves]
    return fmean(gains) if gains else None


def _int8_minus_float(members: Sequence[TrialRecord]) -> float | None:
    """Of their own trainings, without replicates."""
    changes = [t.curve[-1] - t.float_top1 for t in members if t.float_top1 is not None]
    return fmean(changes) if changes else None


def _ordered(run: Run) -> float | None:
    """Mean probability of neighbours to be in the true order."""
    if run.noise is None or not run.noise.is_measured or len(run.front) < 2:
        return None
    pairs = pairwise(estimated(run, trial) for trial in run.front)
    chances = [run.noise.ahead(b, a) for a, b in pairs]
    return fmean(max(chance, 1 - chance) for chance in chances)


def _ranked(run: Run) -> list[TrialRecord]:
    """Complete trials with finite curves of the usual length, at most 1,500, evenly chosen."""
    finite = [t for t in run.complete if t.curve and all(isfinite(value) for value in t.curve)]
    if not finite:
        return []
    usual = Counter(trial.epochs for trial in finite).most_common(1)[0][0]
    same = [trial for trial in finite if trial.epochs == usual]
    return same[:: -(-len(same) // MOST_FOR_TAU)]


def _taus(ranked: list[TrialRecord]) -> tuple[tuple[int, float], ...]:
    if len(ranked) < 3:
        return ()
    curves = np.array([trial.curve for trial in ranked])
    last = curves.shape[1]
    epochs = sorted({max(1, round(last * share)) for share in _EPOCH_SHARES} - {last})
    taus = ((epoch, kendall_tau(curves[:, epoch - 1], curves[:, -1])) for epoch in epochs)
    return tuple((epoch, tau) for epoch, tau in taus if tau is not None)


def _tau_of_flops(ranked: list[TrialRecord]) -> float | None:
    if len(ranked) < 3:
        return None
    return kendall_tau([trial.flops for trial in ranked], [trial.curve[-1] for trial in ranked])
