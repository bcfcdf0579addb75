"""Sentences on how far the ranking can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from vitnas.calibration.result import PROXY
from vitnas.calibration.text import tau_text
from vitnas.config.costs import COSTS
from vitnas.errors import RunError
from vitnas.report.longer import agreement_text
from vitnas.report.marks import and_text
from vitnas.report.tested import comparison_text
from vitnas.report.text import count_text, plural, signed_text
from vitnas.report.trust import Trust

_MUCH = 2.0
"""Points in the last third of a training; with a rate that falls to 0 it gains little there."""
_FAMILIES = 3  # of baselines: fewer say nothing of the recipe's learning rate


def sentences(trust: Trust) -> list[str]:
    """One short paragraph with numbers for each limit of the ranking. There is at least one."""
    if not trust.front_size:
        return ["No trial has been trained to the end, so there is no ranking to trust."]
    parts = [
        _int8(trust),
        _sampling(trust),
        _fidelity(trust),
        _late(trust),
        _rate(trust),
        _long(trust),
        agreement_text(trust.long),
        _censoring(trust),
    ]
    parts += [comparison_text(trust.tested), _seeds(trust), _measured(trust)]
    return [part for part in parts if part]


def _int8(trust: Trust) -> str:
    if trust.int8_minus_float is None:
        return ""
    change = signed_text(trust.int8_minus_float)
    return (
        "Top-1 is that of each trained network in int8, as onnxruntime runs it on the CPU, "
        "calibrated on training images; epochs before the last one are scored in float. On the "
        f"front, top-1 in int8 minus that in float is {change} points on average. Long trainings "
        "(`vitnas train --for`) are scored in float."
    )


def _sampling(trust: Trust) -> str:
    if trust.standard_error is None or trust.num_images is None:
        return (
            "The run does not say on how many images top-1 was measured, so its sampling error "
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
            f"{_are(trust.close_neighbours)} expected to differ by less than one standard error "
            "of their difference"
        )
        text += (
            ", which comes from replicates."
            if trust.spread is not None
            else ". Both are measured on the same images, so the true error is smaller."
        )
    if trust.ordered is not None:
        text += (
            f" Two neighbours are in the true order with a probability of {trust.ordered:.2f} on "
            "average."
        )
    return text


def _fidelity(trust: Trust) -> str:
    if not trust.taus:
        return (
            f"{plural(trust.num_ranked, 'complete trial')} cannot show how stable the ranking "
            "is over the epochs: this needs three different trials and several epochs."
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
    return text


def _late(trust: Trust) -> str:
    """How far the front is from the end of its learning."""
    if trust.late_gain is None or trust.late_gain < _MUCH:
        return ""
    return (
        f"The front's members gained {trust.late_gain:.1f} points in the last third of their "
        f"{plural(trust.epochs, 'epoch')}: they still learn, so networks that learn fast may rank "
        f"too high. More epochs (`--epochs {2 * trust.epochs}`) tell more, and so do "
        "long trainings of networks and of baselines of their FLOPs (`vitnas confirm`)."
    )


def _rate(trust: Trust) -> str:
    """Whether most families of baselines, with the best one, want another learning rate here."""
    factors = trust.rate_factors
    if trust.lr is None or not factors or factors[0] == 1:
        return ""
    is_higher = factors[0] > 1
    same = sorted(one for one in factors if one != 1 and (one > 1) == is_higher)
    if len(same) < max(_FAMILIES, len(factors) // 2 + 1):
        return ""
    low, high = (f"{factor * trust.lr:g}" for factor in (same[0], same[-1]))
    # `--lr` takes the space's own recipe, so it would leave out what else was tuned.
    how = "" if trust.is_tuned else f" (`--lr {low if is_higher else high}`)"
    way, off = ("higher", "low") if is_higher else ("lower", "high")
    return (
        f"{len(same)} of {len(factors)} families of baselines, the best one among them, learn best "
        f"at a {way} learning rate ({low if low == high else f'{low} to {high}'}) than the trials "
        f"have ({trust.lr:g}). So this rate may be too {off} for these images, and a search with "
        f"another one{how} may find a better front; `vitnas tune SPACE --front-of` this run tries "
        "some."
    )


def _long(trust: Trust) -> str:
    """How well the ranking after the proxy agrees with that after a long training."""
    found = trust.calibration
    if isinstance(found, RunError):
        return f"The calibration in this folder is not used: {found}."
    if found is None:
        return (
            "The proxy's epochs do not say how well its ranking agrees with that after a full "
            "training; `vitnas calibrate` measures it."
        )
    proxy, size, ceiling = found.figures(PROXY), found.best_size, found.ceiling_within
    return (
        f"A calibration on {len(found.networks)} networks of this space compares the proxy's "
        f"ranking with that after {found.long_epochs} epochs: tau is {tau_text(proxy.overall)} "
        f"over all networks, and {tau_text(proxy.within)} among networks of similar FLOPs. There "
        f"{size.name} alone has {size.within.value:.2f}, and another long training has "
        f"{ceiling.value:.2f}."
    )


def _how_many(trust: Trust) -> str:
    if trust.num_ranked == trust.num_complete:
        return plural(trust.num_ranked, "complete trial")
    return f"{trust.num_ranked:,} of {trust.num_complete:,} complete trials, evenly chosen"


def _censoring(trust: Trust) -> str:
    if not trust.num_stopped:
        return ""
    verb = "was" if trust.num_stopped == 1 else "were"
    text = (
        f"{plural(trust.num_stopped, 'trial')} {verb} stopped early. Their top-1 might have "
        "become higher, so they are drawn hollow, are never on the front, and are not in the taus "
        "above."
    )
    for row in trust.starved:
        text += (
            f" Between {count_text(row.low)} and {count_text(row.high)} FLOPs "
            f"{plural(row.started, 'training')} started and none was finished, so the front says "
            "nothing about networks of this size."
        )
    return text


def _measured(trust: Trust) -> str:
    if not trust.num_devices:
        return ""
    text = (
        f"{_passes(trust.measured)}, measured once for each network before its first epoch: repeat "
        "the measurement if a few percent matter."
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
        f"{trust.num_repeated:,} of {plural(trust.num_complete, 'network')} that reached the end "
        f"got {plural(trust.num_replicates, 'replicate')}, trainings with other seeds, and their "
        "top-1 is the mean of all their trainings"
    )
    if trust.num_lost_replicates:
        lost = plural(trust.num_lost_replicates, "replicate")
        text += f"; not counted: {lost} that did not reach the end"
    text += (
        f". The trainings of one network scatter {trust.spread:.2f} times as much as the binomial "
        "error, as an estimate over all networks; ± is one standard error of a mean."
    )
    return f"{text} {_standing(trust)}"


def _standing(trust: Trust) -> str:
    """What confident and plausible mean, and how many there are."""
    text = (
        "A network is confident if, with a probability of at least 0.9, no cheaper one has a "
        "higher expected top-1 on these images; it is plausible from 0.1 on. Noise counts as "
        f"normal and independent. Of {trust.front_size} on the front, {trust.num_confident} "
        f"{_are(trust.num_confident)} confident and {trust.num_plausible} not"
    )
    if trust.num_plausible_off:
        off = trust.num_plausible_off
        text += f"; {off} more {_are(off)} not on the front, but may be on the true one"
    return text + ". Other images would add another error, almost equal for all networks."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _one_seed(trust: Trust) -> str:
    text = (
        "Every network was trained with one seed. The scatter between seeds is not measured here, "
        "and the binomial error does not include it"
    )
    if trust.standard_error is not None:
        text += (
            f". With the binomial error alone, {trust.num_confident} of {trust.front_size} on the "
            "front would be on it with a probability of at least 0.9, and "
            f"{plural(trust.num_plausible_off, 'other')} might be (the tables of the front name "
            "them)"
        )
    return text + (
        ". Before you choose between neighbours, run the same command with `--replicates 3`: it "
        "trains those networks again that may be on the front."
    )
