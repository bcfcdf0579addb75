"""The contract that vitnas ships catches the mixers that break it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vitnas.nn.mixers import Place, TokenMixer
from vitnas.testing import GRID, WIDTH, MixerContract, place_of, tokens_for


class Good(TokenMixer):
    """A linear layer over channels. It has no closed form and is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    @classmethod
    def at(cls, place: Place) -> TokenMixer:
        return cls()

    def forward(self, x: Tensor, grid: Any, pass_index: int = 0, taps: Any = None) -> Tensor:
        return self.mixed(self.layer(x), taps)

    def mixed(self, x: Tensor, taps: Any) -> Tensor:
        return x


class Narrow(Good):
    def mixed(self, x: Tensor, taps: Any) -> Tensor:
        return x[..., 1:]


class Unused(Good):
    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Parameter(torch.zeros(3))


class OverTheBatch(Good):
    def mixed(self, x: Tensor, taps: Any) -> Tensor:
        return x - x.mean(dim=0)


class Noisy(Good):
    def mixed(self, x: Tensor, taps: Any) -> Tensor:
        return x + torch.randn_like(x)


class Tapping(Good):
    """Its facts do not say so."""

    def mixed(self, x: Tensor, taps: Any) -> Tensor:
        if taps is not None:
            taps.append(x)
        return x


class SingleOnly(Good):
    """Rounds its numbers down to steps of 4."""

    def mixed(self, x: Tensor, taps: Any) -> Tensor:
        return x if x.dtype == torch.float32 else (x / 4).floor() * 4


class Contract(MixerContract):
    mixer = f"{__name__}:Good"
    variants = {"default": {}, "two passes": {"groups": [1, 1]}}  # noqa: RUF012


class TestGood(Contract):
    """A mixer of another package that keeps the contract."""


CAUGHT = {
    Narrow: "test_keeps_the_shape",
    Unused: "test_gradient_reaches_every_parameter",
    OverTheBatch: "test_images_do_not_see_each_other",
    Noisy: "test_eval_is_deterministic_and_draws_nothing",
    SingleOnly: "test_runs_in_half_precision",
}


@pytest.mark.parametrize("kind", CAUGHT, ids=lambda kind: kind.__name__)
def test_a_mixer_that_breaks_the_contract_is_caught(kind: type[Good]) -> None:
    built = kind().eval()
    test = getattr(Contract(), CAUGHT[kind])
    with pytest.raises(AssertionError):
        test(built, place_of(Contract.mixer), 0)


def test_a_tap_that_is_not_announced_is_caught() -> None:
    test = Contract().test_gives_query_key_and_value_where_it_says_so
    test(place_of(Contract.mixer))
    with pytest.raises(AssertionError):
        test(place_of(f"{__name__}:Tapping"))


def test_places_take_fields_of_stage_and_network() -> None:
    place = place_of("mhsa", depth=2, class_token=True, head_dim=None)
    assert (place.stage_config.depth, place.stage_config.heads) == (2, 4)
    assert place.num_tokens == GRID[0] * GRID[1] + 1
    first, second = tokens_for(place, batch=2), tokens_for(place, batch=2)
    assert first.shape == (2, place.num_tokens, WIDTH)
    assert torch.equal(first, second)
    assert not torch.equal(first, tokens_for(place, batch=2, seed=1))
