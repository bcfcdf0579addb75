from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vitnas.seeds import derive_seed


@given(st.integers(), st.text(max_size=5))
def test_seeds_are_in_range_and_repeatable(seed: int, part: str) -> None:
    derived = derive_seed(seed, part)
    assert 0 <= derived < 2**31
    assert derived == derive_seed(seed, part)
    assert derived != derive_seed(seed, part, 1)


def test_a_seed_is_the_same_in_every_process() -> None:
    """A stored study depends on these numbers: they may never change."""
    assert derive_seed(0, "session", 0) == 1396223203
