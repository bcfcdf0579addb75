"""How random draws are spread, and that those of the papers' spaces are spread evenly."""

from __future__ import annotations

import pytest

from tests.config.trees import space_of, stage
from vitnas.config.mixers import MIXERS
from vitnas.config.space import load_space
from vitnas.cost.spread import spread

PAPERS = ["papers_224", "papers_224_vit", "papers_32", "papers_32_vit"]


def test_shares_are_those_of_the_draws() -> None:
    mixers = {"choice": ["mhsa", "dwconv"]}
    groups = {"choice": ["[1]", "[4,1]"]}
    found = spread(space_of({"stages": [stage(token_mixer=mixers), stage(groups=groups)]}), 200)
    assert (found.refused, found.within) == (0.0, 1.0)
    assert found.sliced == pytest.approx(0.5, abs=0.12)
    assert sum(found.tenths) == pytest.approx(1.0)
    assert found.tenths[0] > 0
    assert found.tenths[9] > 0
    assert set(found.mixers) == {(2, 0), (2, 1)}
    assert set(found.mixers[2, 0]) == {"mhsa", "dwconv"}
    assert set(found.passes[2, 1]) == {1, 2}


def test_a_stage_of_two_mixers_is_counted_apart() -> None:
    both = {"pattern": ["dwconv", "mhsa"]}
    mixed = stage(token_mixer={"choice": ["mhsa", both]}, depth=2)
    found = spread(space_of({"stages": [mixed, stage()]}), 200)
    assert found.mixed == pytest.approx(0.5, abs=0.12)
    assert set(found.mixers[2, 0]) == {"mhsa"}
    assert found.mixers[2, 0].total() == round(200 * (1 - found.mixed))


def test_draws_that_break_a_rule_or_a_limit_are_counted() -> None:
    heads = {"choice": [7]}
    stages = [stage(embed_dim={"choice": [28, 32]}, num_heads=heads)]
    half = spread(space_of({"stages": stages}), 200)
    assert half.refused == pytest.approx(0.5, abs=0.12)
    space = space_of({"stages": [stage()]}, limits={"flops": {"max": 1}})
    with pytest.raises(ValueError, match="none of 5 draws"):
        spread(space, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_spaces_are_spread_evenly(name: str) -> None:
    """In a tenth of the draws that `docs/spaces.md` is about, with wider bounds.

    No paper has a stage without blocks.
    """
    found = spread(load_space(name), 300)
    assert found.refused <= 0.05
    assert found.sliced >= 0.15
    assert found.mixed >= 0.15
    assert min(found.tenths) >= 0.003
    assert all(set(seen) == {*MIXERS} - {"skip"} for seen in found.mixers.values())
    assert all(set(seen) == {1, 2, 3, 4} for seen in found.passes.values())
    assert set(found.mixers) == ({(1, 0)} if "vit" in name else PYRAMIDS)


PYRAMIDS = {(count, index) for count in (3, 4) for index in range(count)}
