"""Networks on offer."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.config.trees import TREE
from tests.engine.conftest import make_space
from vitnas.config.space import load_space
from vitnas.cost.limits import over_limits
from vitnas.engine.samplers.pool import SpacePool, propose_like


def test_pool_networks_are_what_their_params_lead_to() -> None:
    space = load_space("digits")
    pool = SpacePool(space, 0, first=40, fresh=10)
    parent = pool.sample()[0].params
    offered = pool.offer(set(), [parent])
    assert len({p.key for p in offered}) == len(offered) > 30
    for proposal in [*offered[:10], *offered[-5:]]:
        assert not over_limits(proposal, space.config.limits)
        again = propose_like(space, proposal.params)
        assert again == proposal


def test_what_was_kept_is_offered_again_and_known_networks_are_not() -> None:
    pool = SpacePool(load_space("digits"), 0, first=20, fresh=0, size=5)
    offered = pool.offer(set(), [])
    pool.keep(offered)
    again = pool.offer({offered[0].key}, [])
    assert [p.key for p in again] == [p.key for p in offered[1:5]]


def test_the_pool_begins_with_networks_that_are_alike_in_all_stages() -> None:
    offered = SpacePool(load_space("hybrid_cifar"), 0, first=60).sample()
    mixers = [{v for k, v in p.params.items() if k.endswith("token_mixer")} for p in offered]
    assert sum(len(different) == 1 for different in mixers) >= 10


def test_a_network_is_plain_though_a_random_draw_found_it_first() -> None:
    stage = {"token_mixer": "mhsa", "embed_dim": {"choice": [8, 16]}, "head_dim": 8}
    model = TREE["model"] | {"stages": [stage], "groups": "[1]"}
    pool = SpacePool(make_space(model=model), 0, first=40)
    offered = pool.sample()
    assert len(offered) == 2
    assert all(proposal.is_plain for proposal in offered)


@pytest.mark.slow
def test_a_short_search_is_offered_more_new_networks_a_step_than_a_long_one() -> None:
    pool = SpacePool(load_space("hybrid_cifar"), 0, first=20, fresh=64)
    numbers = [len(pool.sample())]
    for known in (10, 10, 200, 5000):
        numbers += [len(pool.offer({str(number) for number in range(known)}, []))]
    new = [after - before for before, after in pairwise(numbers)]
    assert min(new[:2]) > 40
    assert 16 < new[2] <= 32
    assert 8 < new[3] <= 16


def test_the_best_of_what_was_offered_is_varied() -> None:
    """Half of what is new is like the one network that was kept, though there is no parent."""
    space = load_space("hybrid_cifar")
    pool = SpacePool(space, 0, first=20, fresh=12, size=1)
    best = pool.offer(set(), [])[0]
    pool.keep([best])
    new = [proposal for proposal in pool.offer(set(), []) if proposal.key != best.key]
    shared = [len(best.params.items() & proposal.params.items()) for proposal in new]
    assert sum(count > 0.7 * len(best.params) for count in shared) >= 3
    again = pool.offer({best.key}, [])
    assert best.key not in {proposal.key for proposal in again}
