"""What every implementation of something must keep, as test classes to inherit from."""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig, StageConfig
from vitnas.cost.counter import count_operators
from vitnas.nn.mixers import MIXERS, Place, TokenMixer, build_mixer

GRID = (4, 6)
WIDTH = 16
NORMS = {"layer_norm", "batch_norm"}


def place_of(token_mixer: str, *, block: int = 0, **fields: Any) -> Place:
    """A place for a mixer in a network of one stage, on a grid that is not square.

    Args:
        token_mixer: its name.
        block: index of the block.
        fields: of the stage where a stage has such a field, else of the network.
    """
    stage = {"token_mixer": token_mixer, "embed_dim": WIDTH}
    if token_mixer in ("mhsa", "ska", "cska"):
        stage["num_heads"] = 4
    stage |= {name: fields.pop(name) for name in list(fields) if name in StageConfig.model_fields}
    tree = {"img_size": GRID, "stem": {"stride": 1}, "stages": [stage], **fields}
    config = validate(ModelConfig, tree)
    return Place(config, 0, block, reattention=bool(config.reattention_blocks))


def tokens_for(place: Place, batch: int = 3, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, place.num_tokens, WIDTH, generator=generator)


class _OnPicture(nn.Module):
    """A mixer that takes its tokens as a picture `(B, C, 1, N)`, for the counter."""

    def __init__(self, mixer: TokenMixer, place: Place, passed: int) -> None:
        super().__init__()
        self.mixer, self.place, self.passed = mixer, place, passed

    def forward(self, picture: Tensor) -> Tensor:
        out: Tensor = self.mixer(picture.flatten(2).transpose(1, 2), self.place.grid, self.passed)
        return out


class MixerContract:
    """Inherit, set `token_mixer`, and list in `variants` the fields that select its forms.

    A variant is a dictionary of fields as `place_of` takes them; its last pass is the one tested.
    """

    token_mixer: ClassVar[str]
    variants: ClassVar[dict[str, dict[str, Any]]] = {"default": {}}
    pytestmark: ClassVar[list[pytest.MarkDecorator]]

    def __init_subclass__(cls) -> None:
        cls.pytestmark = [pytest.mark.parametrize("variant", list(cls.variants))]

    @pytest.fixture
    def place(self, variant: str) -> Place:
        return place_of(self.token_mixer, **self.variants[variant])

    @pytest.fixture
    def passed(self, place: Place) -> int:
        return place.stage_config.passes - 1

    @pytest.fixture
    def mixer(self, place: Place) -> TokenMixer:
        torch.manual_seed(0)
        return build_mixer(place).eval()

    def macs_names(self, place: Place, passed: int) -> dict[str, float]:
        """Values of the letters in the docstring's formula."""
        stage = place.stage_config
        return {
            "N": place.num_tokens,
            "C": stage.embed_dim,
            "h": stage.heads,
            "g": stage.groups[passed],
            "c": int(place.config.class_token),
            "r": int(place.reattention),
            "q": int(stage.q_proj),
            "M": int(stage.expansion * stage.embed_dim),
            "k": stage.kernel,
            "S": stage.hidden_tokens,
        }

    def test_is_in_the_table_under_its_name(self, mixer: TokenMixer) -> None:
        assert type(mixer) is MIXERS[self.token_mixer]

    def test_keeps_the_shape(self, mixer: TokenMixer, place: Place, passed: int) -> None:
        x = tokens_for(place)
        assert mixer(x, place.grid, passed).shape == x.shape

    def test_gradient_reaches_every_parameter(
        self, mixer: TokenMixer, place: Place, passed: int
    ) -> None:
        x = tokens_for(place).requires_grad_()
        out = mixer(x, place.grid, passed)
        (out * tokens_for(place, seed=1)).sum().backward()
        assert x.grad is not None
        assert x.grad.any()
        for name, parameter in mixer.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.any(), name

    def test_images_do_not_see_each_other(
        self, mixer: TokenMixer, place: Place, passed: int
    ) -> None:
        x = tokens_for(place)
        together = mixer(x, place.grid, passed)
        for index in range(len(x)):
            alone = mixer(x[index : index + 1], place.grid, passed)
            torch.testing.assert_close(together[index : index + 1], alone)

    def test_eval_is_deterministic_and_draws_nothing(
        self, mixer: TokenMixer, place: Place, passed: int
    ) -> None:
        x = tokens_for(place)
        torch.manual_seed(1)
        before = torch.get_rng_state()
        first = mixer(x, place.grid, passed)
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(2)
        assert torch.equal(mixer(x, place.grid, passed), first)

    def test_counted_macs_are_the_docstrings(
        self, mixer: TokenMixer, place: Place, passed: int
    ) -> None:
        found = re.search(r"MACs: ``(.+?)``", inspect.getdoc(type(mixer)) or "")
        assert found, "the class docstring states no MACs"
        stated = eval(found[1], {}, self.macs_names(place, passed))
        shape = (WIDTH, 1, place.num_tokens)
        counted = count_operators(_OnPicture(mixer, place, passed), shape)
        assert sum(macs for name, macs in counted.items() if name not in NORMS) == stated

    def test_runs_in_half_precision(self, mixer: TokenMixer, place: Place, passed: int) -> None:
        x = tokens_for(place)
        whole = mixer(x, place.grid, passed)
        with torch.autocast("cpu", torch.bfloat16):
            half = mixer(x, place.grid, passed)
        torch.testing.assert_close(half.float(), whole, rtol=0.1, atol=0.1)
