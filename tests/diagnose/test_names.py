"""The diagnostics by name."""

from __future__ import annotations

import pytest

from vitnas.diagnose import NAMES, choose
from vitnas.diagnose.names import OF_MAPS, USUAL
from vitnas.errors import ConfigError


def test_all_but_the_costly_one_without_a_choice() -> None:
    assert choose(None) == USUAL
    assert set(NAMES) - set(USUAL) == {"landscape"}
    assert choose("landscape,cka") == ("cka", "landscape")
    assert set(OF_MAPS) < set(NAMES)


def test_the_choice_is_in_our_order_and_each_name_once() -> None:
    assert choose(" cka,similarity , cka") == ("similarity", "cka")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as error:
        choose("cka,rolout")
    assert str(error.value).startswith("--only = 'rolout': must be one of maps, similarity, ")
    assert str(error.value).endswith("(nearest: rollout)")


def test_no_name_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="names none of"):
        choose(" , ")
