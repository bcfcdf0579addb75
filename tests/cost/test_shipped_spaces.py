"""The formula and two counters agree on networks of every shipped space; nightly on hundreds."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.cost.test_closed_form import check, torch_flops
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space, shipped_spaces
from vitnas.config.trials import RandomTrial
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits

PAPERS = sorted(
    name for name in shipped_spaces() if name.startswith(("ska_", "deepvit_", "bvit_", "sret_"))
)
TWINS = sorted(name for name in shipped_spaces() if name.startswith("small/"))
HYBRIDS = sorted(set(shipped_spaces()) - {*PAPERS, *TWINS})
SMALL = {"digits", "fashion_32", "hybrid_fashion", "images_64"}
LARGE = ["hybrid_imagenet", "papers_224", "papers_224_vit"]
"""fvcore runs a network, which takes seconds here; torch's counter does not."""


def within_limits(space: SearchSpace, count: int, first_seed: int = 0) -> list[ModelConfig]:
    drawn = (
        space.suggest(RandomTrial(seed)) for seed in range(first_seed, first_seed + 100 * count)
    )
    limits = space.config.limits
    return list(islice((c for c in drawn if over_limits(closed_form(c), limits) is None), count))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "hybrid_fashion"])
def test_formula_equals_fvcore_and_torch(name: str) -> None:
    for config in within_limits(load_space(name), 12):
        check(config)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PAPERS, *sorted(set(HYBRIDS) - SMALL)])
def test_formula_equals_torch_on_large_networks(name: str) -> None:
    """Two or three of each, on the meta device; all of them, and fvcore, in the nightly run."""
    space = load_space(name)
    configs = list(space.networks()) if name in PAPERS else within_limits(space, 5)
    for config in configs[:: max(3, len(configs) // 2)]:
        cost = closed_form(config)
        assert torch_flops(config) == 2 * (cost.flops - cost.norm_flops)


@pytest.mark.nightly
@pytest.mark.parametrize("name", HYBRIDS)
def test_formula_equals_fvcore_over_many_hybrids(name: str) -> None:
    count = 30 if name in LARGE else 200
    for config in within_limits(load_space(name), count, first_seed=10_000):
        check(config)


@pytest.mark.nightly
@pytest.mark.parametrize("name", LARGE)
def test_formula_equals_torch_over_hundreds_of_large_hybrids(name: str) -> None:
    for config in within_limits(load_space(name), 300, first_seed=20_000):
        cost = closed_form(config)
        assert torch_flops(config) == 2 * (cost.flops - cost.norm_flops)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*PAPERS, *TWINS])
def test_formula_equals_fvcore_on_every_network_of_a_paper(name: str) -> None:
    for config in load_space(name).networks():
        check(config)
