"""FLOPs and parameters by formula: networks a second on one core, against fvcore and building.

Networks of every shipped space are drawn at random. The formula's time is that of its first call on
a configuration that has just been built, so nothing is cached. fvcore's is that of
`vitnas.cost.counter.measure_cost`: build on the meta device, allocate, trace; the ratios compare
the same spaces in the same run, and both counts must be equal.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from common import conclude, draw_configs, is_quick, rounded, seconds_of, show

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space, shipped_spaces
from vitnas.cost.closed_form import closed_form


@dataclass(frozen=True)
class Timing:
    """Seconds for one network of a space."""

    space: str
    formula: float
    fvcore: float
    build: float


def formula_seconds(space: SearchSpace, count: int, repeats: int) -> float:
    """Median over the repeats of the seconds for one network, each network priced once."""
    per_network = []
    for repeat in range(repeats):
        configs = draw_configs(space, count, first_seed=repeat * count)
        per_network.append(seconds_of(lambda: [closed_form(c) for c in configs]) / len(configs))  # noqa: B023
    return statistics.median(per_network)


def fvcore_seconds(configs: list[ModelConfig]) -> tuple[float, float]:
    """Seconds for one network: counted by fvcore, and only built on the meta device."""
    import torch

    from vitnas.cost.counter import measure_cost
    from vitnas.nn import build_model

    torch.set_num_threads(1)
    counting, building = 0.0, 0.0
    for config in configs:
        with torch.device("meta"):
            building += seconds_of(lambda: build_model(config))  # noqa: B023
        measured = []
        counting += seconds_of(lambda: measured.append(measure_cost(config)))  # noqa: B023
        cost = closed_form(config)
        assert (measured[0].flops, measured[0].num_params) == (cost.flops, cost.num_params)
    return counting / len(configs), building / len(configs)


def main() -> None:
    quick = is_quick(__doc__)
    count, repeats, counted = (50, 2, 1) if quick else (300, 5, 4)
    names = ["digits", "hybrid_fashion"] if quick else list(shipped_spaces())
    fvcore_seconds(draw_configs(load_space("digits"), 1))  # imports and first calls
    timings = []
    for name in names:
        space = load_space(name)
        formula = formula_seconds(space, count, repeats)
        timings.append(Timing(name, formula, *fvcore_seconds(draw_configs(space, counted))))
    show(
        ("space", "formula, us", "networks/s", "fvcore, ms", "ratio", "building, ms", "ratio"),
        [
            (
                t.space,
                f"{1e6 * t.formula:.1f}",
                f"{1 / t.formula:,.0f}",
                f"{1e3 * t.fvcore:.1f}",
                f"{t.fvcore / t.formula:,.0f}",
                f"{1e3 * t.build:.1f}",
                f"{t.build / t.formula:,.0f}",
            )
            for t in timings
        ],
    )
    figures = {
        "networks_per_s": round(len(timings) / sum(t.formula for t in timings)),
        "networks_per_s_slowest_space": round(1 / max(t.formula for t in timings)),
        "fvcore_over_formula_median": rounded(
            statistics.median(t.fvcore / t.formula for t in timings)
        ),
        "fvcore_over_formula_least": rounded(min(t.fvcore / t.formula for t in timings)),
        "building_over_formula_median": rounded(
            statistics.median(t.build / t.formula for t in timings)
        ),
        "building_over_formula_least": rounded(min(t.build / t.formula for t in timings)),
        "networks": count * repeats * len(timings),
        "networks_counted_by_fvcore": counted * len(timings),
    }
    bound = {"min": 10_000}
    targets = {"networks_per_s": bound, "networks_per_s_slowest_space": bound}
    conclude("closed_form", quick, figures, targets)


if __name__ == "__main__":
    main()
