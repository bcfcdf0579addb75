"""What random draws of the large spaces are: rules broken, sliced groups, passes, FLOPs, the zoo.

Draws have the seeds 0, 1, 2, ..., so the tables are the same on every machine. They are those in
docs/spaces.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from common import conclude, is_quick

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space, shipped_spaces
from vitnas.cost.spread import Spread, spread
from vitnas.engine.decide.locate import locate
from vitnas.errors import ConfigError
from vitnas.nn.zoo import zoo_config, zoo_names

VIEWS = ["hybrid_imagenet", "hybrid_cifar"]
PAPERS = ["papers_224", "papers_224_vit", "papers_32", "papers_32_vit"]
HEAD = (
    *("space", "break a rule", "within the limits", "of these: sliced groups"),
    *("of these: two mixers in a stage", "in every stage"),
    *("of these: in a tenth of log FLOPs", "models of the zoo"),
)


def main() -> None:
    quick = is_quick(__doc__)
    draws = 200 if quick else 3_000
    names = ["papers_224_vit"] if quick else [*PAPERS, *VIEWS]
    found = {name: spread(load_space(name), draws) for name in names}
    shipped = [name for name in shipped_spaces() if "/" not in name]
    held = {name: models_in(load_space(name)) for name in (names if quick else shipped)}
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in names:
        print(f"| {' | '.join(cells(name, found[name], len(held[name])))} |")
    print("\n| models of the zoo | are points of |\n|---|---|")
    for where, models in by_spaces(held).items():
        print(f"| {quoted(models)} | {quoted(where) or 'none'} |")
    new = [found[name] for name in names if name in PAPERS]
    of_papers = [held[name] for name in names if name in PAPERS]
    figures = {
        "most_that_break_a_rule": round(max(one.refused for one in new), 4),
        "least_sliced": round(min(one.sliced for one in new), 4),
        "least_in_a_tenth": round(min(min(one.tenths) for one in found.values()), 4),
        "models_of_the_zoo": len(set().union(*of_papers)),
    }
    targets = {
        "most_that_break_a_rule": {"max": 0.05},
        "least_sliced": {"min": 0.1 if quick else 0.2},
        "least_in_a_tenth": {"min": 0.005 if quick else 0.02},
        "models_of_the_zoo": {"min": 17 if quick else 47},
    }
    conclude("spaces", quick, figures, targets)


def cells(name: str, one: Spread, models: int) -> list[str]:
    always = [set.intersection(*map(set, seen.values())) for seen in (one.mixers, one.passes)]
    passes = ", ".join(map(str, sorted(always[1])))
    few, many = (f"{100 * share:.1f}" for share in (min(one.tenths), max(one.tenths)))
    return [
        f"`{name}`",
        *(f"{100 * share:.1f} %" for share in (one.refused, one.within, one.sliced, one.mixed)),
        f"{len(always[0])} mixers; passes {passes}",
        f"{few} to {many} %",
        str(models),
    ]


def by_spaces(held: Mapping[str, Sequence[str]]) -> dict[tuple[str, ...], list[str]]:
    """The models of the zoo by the spaces that they are points of."""
    found: dict[tuple[str, ...], list[str]] = {}
    for model in zoo_names():
        where = tuple(sorted(name for name, models in held.items() if model in models))
        found.setdefault(where, []).append(model)
    return found


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def models_in(space: SearchSpace) -> list[str]:
    """The models of the zoo that are points of the space, at its own image size."""
    sizes = {height for height, width in space.image_sizes() if height == width}
    models = {name: zoo_config(name) for name in zoo_names()}
    return [name for name, c in models.items() if c.img_size in sizes and is_point(space, c)]


def is_point(space: SearchSpace, config: ModelConfig) -> bool:
    try:
        locate(space, config, "zoo")
    except ConfigError:
        return False
    return True


if __name__ == "__main__":
    main()
