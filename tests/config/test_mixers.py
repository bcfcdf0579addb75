"""What is known of a token mixer before it is built."""

from __future__ import annotations

from typing import Annotated, get_args

import pytest
from pydantic import Field

from vitnas import plugins
from vitnas.config.findings import FieldError, RuleError
from vitnas.config.mixers import (
    MIXERS,
    Mixer,
    MixerFacts,
    MixerOptions,
    StaticKeyName,
    checked_name,
    checked_options,
    mixer_named,
    names_with,
    short_name,
    unpacked,
)


class _Options(MixerOptions):
    step: Annotated[int, Field(ge=1, le=4)] = 1


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> str:
    """A mixer with an option, in the table for the length of a test."""
    monkeypatch.setitem(MIXERS, "shift", Mixer("a.b:Shift", MixerFacts(options=_Options)))
    return "shift"


def test_a_graft_takes_the_mixers_that_start_a_key() -> None:
    with_key = [name for name, mixer in MIXERS.items() if "key_init" in mixer.facts.fields]
    assert list(get_args(StaticKeyName)) == with_key


def test_what_shares_maps_has_maps_to_mix_across_heads() -> None:
    assert names_with("shares_maps")
    assert set(names_with("shares_maps")) <= set(names_with("reattention"))
    assert set(names_with("reattention")) <= set(names_with("maps"))


def test_an_option_at_its_default_is_left_out(shift: str) -> None:
    assert checked_options(shift, {"step": 1}) == {}
    assert checked_options(shift, {"step": 2}) == {"step": 2}


@pytest.mark.parametrize(
    ("given", "address", "nearest"), [({"step": 9}, "step", "4"), ({"stepp": 2}, "stepp", "step")]
)
def test_an_option_is_checked_where_it_stands(
    shift: str, given: dict[str, int], address: str, nearest: str
) -> None:
    with pytest.raises(FieldError) as caught:
        checked_options(shift, given)
    assert (caught.value.address, str(caught.value.nearest)) == (address, nearest)


def test_options_may_stand_with_their_mixer_in_a_choice() -> None:
    together = {"token_mixer": {"mixer": "shift", "step": 2}, "depth": 1}
    apart = {"token_mixer": "shift", "mixer_options": {"step": 2}, "depth": 1}
    assert unpacked(together) == apart
    assert unpacked(apart) == apart
    with pytest.raises(RuleError, match="give them in one place"):
        unpacked(together | {"mixer_options": {}})


def test_a_misspelt_mixer_is_told_the_nearest_name() -> None:
    with pytest.raises(RuleError) as caught:
        checked_name("mhsaa")
    assert caught.value.nearest == "mhsa"


def test_of_what_is_not_imported_nothing_is_refused() -> None:
    with plugins.closed():
        facts = mixer_named("nobody.knows:This").facts
    assert facts.maps
    assert facts.groups == "ignored"
    assert short_name("nobody.knows:This") == "This"
