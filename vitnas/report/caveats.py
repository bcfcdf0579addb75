"""The sentences that say how far the ranking can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from vitnas.calibration.result import PROXY, Calibration
from vitnas.calibration.text import tau_text
from vitnas.config.costs import COSTS
from vitnas.report.marks import and_text
from vitnas.report.text import count_text, plural, signed_text
from vitnas.report.trust import Trust


def sentences(trust: Trust) -> list[str]:
    """One short paragraph for each limit, with its numbers; there is always one."""
    if not trust.front_size:
        return ["No trial has been trained to the end, so there is no ranking to trust."]
    parts = [_sampling(trust), _fidelity(trust), _censoring(trust), _test(trust), _seeds(trust)]
    parts += [_measured(trust)]
    return [part for part in parts if part]


def _sampling(trust: Trust) -> str:
    if trust.standard_error is None or trust.num_images is None:
        return (
            "The run does not say how many images top-1 was measured on, so its sampling error "
            "is not known."
        )
    text = (
        f"Top-1 was measured on {trust.num_images:,} images: one standard error is "
        f"{trust.standard_error:.2f} points at the front's median."
    )
    pairs = trust.front_size - 1
    if pairs and trust.close_neighbours is not None:
        text += (
            f" Of {plural(pairs, 'pair')} of neighbours on the front, {trust.close_neighbours} "
            "differ by less than one standard error of their difference, taken as independent"
        )
        text += (
            ", from replicates."
            if trust.spread is not None
            else "; the images are the same ones, so the true error of a difference is smaller."
        )
    return text


def _fidelity(trust: Trust) -> str:
    if not trust.taus:
        return (
            f"{plural(trust.num_ranked, 'complete trial')} cannot show how stable the ranking "
            "is over the epochs: that takes three that differ and several epochs."
        )
    listed = ", ".join(f"{tau:.2f} after epoch {epoch}" for epoch, tau in trust.taus)
    text = (
        f"Kendall's tau between top-1 at an earlier epoch and after the last ({trust.epochs}), "
        f"over {_how_many(trust)}: {listed}."
    )
    if trust.flops_tau is not None:
        text += f" Ranking by FLOPs alone gives {trust.flops_tau:.2f}."
    if trust.num_ranked < 20:
        text += " So few trials make these taus rough."
    return text + _long(trust.calibration)


def _long(found: Calibration | None) -> str:
    """How the ranking after the proxy relates to the ranking after a long training."""
    if found is None:
        return (
            " How the ranking after the proxy relates to the ranking after a full training is not "
            "in these numbers; vitnas calibrate measures it."
        )
    proxy, size, ceiling = found.figures(PROXY), found.best_size, found.ceiling_within
    return (
        f" A calibration on {len(found.networks)} networks of this space tells how the proxy's "
        f"ranking agrees with that after {found.long_epochs} epochs: tau {tau_text(proxy.overall)} "
        f"over all, {tau_text(proxy.within)} among networks of like FLOPs, where {size.name} alone "
        f"has {size.within.value:.2f} and another long training {ceiling.value:.2f}."
    )


def _how_many(trust: Trust) -> str:
    if trust.num_ranked == trust.num_complete:
        return plural(trust.num_ranked, "complete trial")
    return f"{trust.num_ranked:,} of {trust.num_complete:,} complete trials, thinned evenly"


def _censoring(trust: Trust) -> str:
    if not trust.num_stopped:
        return ""
    verb = "was" if trust.num_stopped == 1 else "were"
    text = (
        f"{plural(trust.num_stopped, 'trial')} {verb} stopped early and might have gone on "
        "rising: they are drawn hollow, are on no front, and are missing from the taus above."
    )
    for row in trust.starved:
        text += (
            f" Between {count_text(row.low)} and {count_text(row.high)} FLOPs "
            f"{plural(row.started, 'training')} began and none was finished, so the front says "
            "nothing about networks of that size."
        )
    return text


def _test(trust: Trust) -> str:
    if trust.test_gaps is None:
        return (
            "No front member has a test top-1. The front is chosen by its scores, so those are "
            "optimistic: the best of many noisy measurements is partly luck."
        )
    low, mean, high = trust.test_gaps
    text = (
        f"Test top-1 minus scoring top-1 over {plural(trust.num_tested, 'front member')}: mean "
        f"{signed_text(mean)}, from {signed_text(low)} to {signed_text(high)} points. A negative "
        "mean is the price of choosing by noisy scores, unless the splits differ in themselves."
    )
    if trust.num_beaten_on_test:
        text += (
            f" By test top-1, {trust.num_beaten_on_test} of them would be dominated by another "
            "front member."
        )
    return text


def _measured(trust: Trust) -> str:
    if not trust.num_devices:
        return ""
    text = (
        f"{_passes(trust.measured)}, measured once for each network before its first epoch: repeat "
        "them where a few percent matter."
    )
    if trust.num_devices > 1:
        text += f" They come from {trust.num_devices} different devices and cannot be compared."
    return text


def _passes(costs: Sequence[str]) -> str:
    """`Latency and peak memory are of one image, throughput of 64 images`."""
    sizes = sorted({COSTS[cost].batch for cost in costs})
    groups = {size: [cost for cost in costs if COSTS[cost].batch == size] for size in sizes}
    texts = [
        f"{and_text(group)} {'of' if index else 'are of' if group[1:] else 'is of'} "
        f"{'one image' if size == 1 else f'{size} images'}"
        for index, (size, group) in enumerate(groups.items())
    ]
    text = ", ".join(texts)
    return text[:1].upper() + text[1:]


def _seeds(trust: Trust) -> str:
    if trust.spread is None:
        return _one_seed(trust)
    text = (
        f"{plural(trust.num_repeated, 'network')} that may be on the front got "
        f"{plural(trust.num_replicates, 'replicate')}, trainings with other seeds, and their top-1 "
        "is the mean of all their trainings"
    )
    if trust.num_lost_replicates:
        lost = plural(trust.num_lost_replicates, "replicate")
        text += f"; left out: {lost} that did not reach the end"
    text += (
        f". Trainings of one network scatter {trust.spread:.2f} times as far as that binomial "
        "error, pooled over networks; ± is one standard error of a mean."
    )
    return f"{text} {_standing(trust)}"


def _standing(trust: Trust) -> str:
    """What confident and plausible mean, and how many there are."""
    text = (
        "A network is confident when the chance that no cheaper one has a higher expected top-1 on "
        "these images is at least 0.9, and plausible from 0.1 on, taking noise as normal and "
        f"independent: of {trust.front_size} on the front, {trust.num_confident} "
        f"{_are(trust.num_confident)} confident and {trust.num_plausible} not"
    )
    if trust.num_plausible_off:
        off = trust.num_plausible_off
        text += (
            f"; {off} more {_are(off)} not on the front of the means, but may be on the true one"
        )
    return text + ". Other images would add an error of their own, much the same for all networks."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _one_seed(trust: Trust) -> str:
    text = (
        "Every network was trained with one seed. The spread between seeds is not measured here, "
        "and the binomial error does not include it"
    )
    if trust.standard_error is not None:
        text += (
            f": by that error alone, {trust.num_confident} of {trust.front_size} on the front "
            "would be on it with a probability of at least 0.9, and "
            f"{plural(trust.num_plausible_off, 'other')} might be"
        )
    return text + (
        ". Before you choose between neighbours, train those that may be on the front again: run "
        "the same command with `--replicates 3`."
    )
