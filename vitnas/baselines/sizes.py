"""Which members of the families a space is compared with: four sizes over its log FLOPs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, log, prod

from vitnas.baselines.families import FAMILIES, build_baseline
from vitnas.config.baseline import LIKE_FLOPS, Baseline, PricedBaseline
from vitnas.config.notation import human
from vitnas.config.objectives import Limits
from vitnas.config.space import SearchSpace
from vitnas.cost.limits import over_limits
from vitnas.cost.operators import count_flops
from vitnas.cost.survey import flops_range
from vitnas.memory import check_memory, free_memory

NUM_SIZES = 4
_COUNTED = (4, 12, 32)  # widths that a family's curve goes through


@dataclass(frozen=True)
class Lineup:
    """What a space is compared with.

    Attributes:
        members: by family, then by size.
        notices: one line where something is left out.
    """

    members: tuple[PricedBaseline, ...]
    notices: tuple[str, ...]


def line_up(space: SearchSpace, most: int) -> Lineup:
    """Members of families near each of `targets`, within the space's limits. No randomness.

    Args:
        space: what they are compared with; its images, at the largest size that it reads.
        most: members. So many families take part as can be trained at all sizes, but at least one.
    """
    families = tuple(FAMILIES)[: max(1, most // NUM_SIZES)] if most else ()
    image_hw = max(space.image_sizes(), key=prod)
    shape = {"in_chans": space.example.in_chans, "num_classes": space.example.num_classes}
    scales = [_Scale(Baseline(family=f, width=1, image_hw=image_hw, **shape)) for f in families]
    goals, limits = targets(*flops_range(space)), space.config.limits
    found = {(scale, goal): scale.near(goal, limits) for scale in scales for goal in goals}
    members = {member.baseline: member for member in found.values() if member is not None}
    missing: dict[str, list[str]] = {}
    for (scale, goal), member in found.items():
        if member is None:
            missing.setdefault(scale.family, []).append(human(goal))
    return Lineup(tuple(members.values()), tuple(_notices(len(members), missing)) if most else ())


def targets(lowest: float, highest: float) -> list[float]:
    """Four FLOPs evenly over log FLOPs, both ends among them; one where the ends are one."""
    if highest <= lowest:
        return [float(lowest)]
    ratio = highest / lowest
    return [lowest * ratio ** (index / (NUM_SIZES - 1)) for index in range(NUM_SIZES)]


@cache
def price(baseline: Baseline) -> PricedBaseline:
    """A member's FLOPs and parameters, counted on the built network; leaves random state alone."""
    import torch

    with torch.random.fork_rng(devices=[]):
        model = build_baseline(baseline)
    flops = count_flops(model, (baseline.in_chans, *baseline.image_hw))
    num_params = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return PricedBaseline(baseline, flops, num_params)


def nearest(some: Baseline, goal: float) -> PricedBaseline | None:
    """The member of a family nearest to `goal` FLOPs, for the images of `some`; None where no width
    is within a factor of `LIKE_FLOPS`."""
    return _Scale(some.changed(width=1)).near(goal, Limits())


def check_room(baseline: Baseline) -> None:
    """Refuse a member whose weights take more memory than is free; leaves random state alone.

    Raises:
        MemoryLimitError: they do.
    """
    import torch

    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = build_baseline(baseline)
    needed = 4 * sum(tensor.numel() for tensor in model.parameters())
    check_memory(needed, f"the weights of {baseline.name}", "take a smaller width")


class _Scale:
    """FLOPs and parameters of a family by width.

    They are parabolas but for rounding. Three counts foretell the width for any FLOPs, and only
    what is chosen, and fits into the memory, is counted once more.
    """

    def __init__(self, first: Baseline) -> None:
        import numpy as np

        self._first, self.family = first, first.family
        self._least = FAMILIES[first.family].least_width
        counted = [price(self._of(width)) for width in _COUNTED]
        fit = np.polynomial.Polynomial.fit
        self._foretold = fit(_COUNTED, [one.flops for one in counted], 2)
        self._params = fit(_COUNTED, [one.num_params for one in counted], 2)

    def near(self, goal: float, limits: Limits) -> PricedBaseline | None:
        """The member nearest to `goal` FLOPs by log; None where none is near within the limits."""
        ideal = self._width(goal)
        around = {max(self._least, int(ideal) + step) for step in (-1, 0, 1, 2)}
        for width in sorted(around, key=lambda width: self._off(width, goal)):
            if self._off(width, goal) > 2 * log(LIKE_FLOPS):  # it is only foretold
                break
            if 4 * self._params(width) > (free_memory() or inf):
                continue
            found = price(self._of(width))
            is_near = abs(log(found.flops / goal)) <= log(LIKE_FLOPS)
            if is_near and over_limits(found, limits) is None:
                return found
        return None

    def _width(self, goal: float) -> float:
        """Where the parabola is at `goal`."""
        roots = (self._foretold - goal).roots()
        return max((root.real for root in roots if not root.imag), default=self._least)

    def _off(self, width: int, goal: float) -> float:
        return abs(log(max(1.0, float(self._foretold(width))) / goal))

    def _of(self, width: int) -> Baseline:
        return self._first.model_copy(update={"width": width})


def _notices(num_members: int, missing: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if not num_members:
        yield "no baselines: no width of any family comes near the space within its limits"
    elif missing:
        listed = "; ".join(f"{family} at {', '.join(at)}" for family, at in missing.items())
        yield f"baselines left out, no width within a factor of {LIKE_FLOPS:g}: {listed} FLOPs"
