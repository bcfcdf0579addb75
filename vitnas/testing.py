"""What every token mixer must keep, as a test class to inherit from; for pytest.

class TestMine(MixerContract):
    mixer = "my_package.my_file:MyMixer"
    variants = {"default": {}, "wide": {"mixer_options": {"window": 3}}}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from vitnas.config.files import validate
from vitnas.config.mixers import mixer_named
from vitnas.config.model import ModelConfig
from vitnas.config.stage import StageConfig
from vitnas.cost.closed_form import closed_form
from vitnas.cost.counter import measure_cost
from vitnas.nn.mixers import Place, TokenMixer, build_mixer, mixer_class

GRID = (4, 6)
WIDTH = 16


def place_of(mixer: str, *, block: int = 0, **fields: Any) -> Place:
    """A place for a mixer in a network of one stage of 16 channels, on a grid of 4x6 tokens.

    Args:
        mixer: its name.
        block: index of the block.
        fields: of the stage where a stage has such a field, else of the network.
    """
    stage = {"token_mixer": mixer, "embed_dim": WIDTH}
    if mixer_named(mixer).facts.heads:
        stage["num_heads"] = 4
    stage |= {name: fields.pop(name) for name in list(fields) if name in StageConfig.model_fields}
    tree = {"img_size": GRID, "stem": {"stride": 1}, "stages": [stage], **fields}
    config = validate(ModelConfig, tree)
    return Place(config, 0, block, reattention=bool(config.reattention_blocks))


def tokens_for(place: Place, batch: int = 3, seed: int = 0) -> Tensor:
    """Random tokens `(batch, N, C)` for a mixer at `place`."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, place.num_tokens, WIDTH, generator=generator)


class MixerContract:
    """Inherit, set `mixer`, and list in `variants` the fields that select its forms.

    A variant is a dictionary of fields as `place_of` takes them; its last pass is the one tested.

    Attributes:
        mixer: its name, as a model file has it.
        variants: names and fields of the forms to test.
    """

    mixer: ClassVar[str]
    variants: ClassVar[dict[str, dict[str, Any]]] = {"default": {}}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "variant" in metafunc.fixturenames:
            metafunc.parametrize("variant", list(self.variants))

    @pytest.fixture
    def place(self, variant: str) -> Place:
        return place_of(self.mixer, **self.variants[variant])

    @pytest.fixture
    def pass_index(self, place: Place) -> int:
        return place.stage_config.passes - 1

    @pytest.fixture
    def built(self, place: Place) -> TokenMixer:
        torch.manual_seed(0)
        return build_mixer(place).eval()

    def test_is_what_its_name_names(self, built: TokenMixer) -> None:
        assert type(built) is mixer_class(self.mixer)

    def test_keeps_the_shape(self, built: TokenMixer, place: Place, pass_index: int) -> None:
        x = tokens_for(place)
        assert built(x, place.grid, pass_index).shape == x.shape

    def test_gradient_reaches_every_parameter(
        self, built: TokenMixer, place: Place, pass_index: int
    ) -> None:
        x = tokens_for(place).requires_grad_()
        out = built(x, place.grid, pass_index)
        (out * tokens_for(place, seed=1)).sum().backward()
        assert x.grad is not None
        assert x.grad.any()
        for name, parameter in built.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.any(), name

    def test_images_do_not_see_each_other(
        self, built: TokenMixer, place: Place, pass_index: int
    ) -> None:
        x = tokens_for(place)
        together = built(x, place.grid, pass_index)
        for index in range(len(x)):
            alone = built(x[index : index + 1], place.grid, pass_index)
            torch.testing.assert_close(together[index : index + 1], alone)

    def test_eval_is_deterministic_and_draws_nothing(
        self, built: TokenMixer, place: Place, pass_index: int
    ) -> None:
        x = tokens_for(place)
        torch.manual_seed(1)
        before = torch.get_rng_state()
        first = built(x, place.grid, pass_index)
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(2)
        assert torch.equal(built(x, place.grid, pass_index), first)

    def test_closed_form_and_counter_agree(self, place: Place) -> None:
        """Of a whole network of this mixer; one without a closed form is counted in both."""
        expected, counted = closed_form(place.config), measure_cost(place.config)
        assert (expected.flops, expected.num_params) == (counted.flops, counted.num_params)

    def test_gives_query_key_and_value_where_it_says_so(self, place: Place) -> None:
        place = replace(place, reattention=False)
        taps: list[Any] = []
        build_mixer(place).eval()(tokens_for(place), place.grid, 0, taps)
        assert bool(taps) == place.stage_config.facts.taps

    def test_runs_in_half_precision(self, built: TokenMixer, place: Place, pass_index: int) -> None:
        x = tokens_for(place)
        whole = built(x, place.grid, pass_index)
        with torch.autocast("cpu", torch.bfloat16):
            half = built(x, place.grid, pass_index)
        torch.testing.assert_close(half.float(), whole, rtol=0.1, atol=0.1)
