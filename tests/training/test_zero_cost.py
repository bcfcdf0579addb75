"""Scores at initialisation: by hand on a network of one layer, and on networks of a space."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pixel_unshuffle

from tests.engine.conftest import make_space
from vitnas.calibration.judge import AZ_PARTS
from vitnas.config.model import ModelConfig
from vitnas.config.trials import RandomTrial
from vitnas.nn.layers.inverted_residual import PointwiseConv
from vitnas.nn.layers.tokens import to_picture, to_tokens
from vitnas.nn.mixers.base import TokenMixer
from vitnas.nn.mixers.identity import Identity
from vitnas.nn.stage import Stage
from vitnas.training.proxy import fresh_model
from vitnas.training.zero_cost import SCORES, zero_cost_scores

CPU = torch.device("cpu")


def drawn(seed: int) -> ModelConfig:
    return make_space().suggest(RandomTrial(seed))


def batch(number: int = 12) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(number, 1, 8, 8, generator=draw)
    return x, torch.randint(10, (number,), generator=draw)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_every_score_is_there_and_the_same_for_a_seed(seed: int) -> None:
    config = drawn(seed)
    found = [zero_cost_scores(fresh_model(config, 1, CPU), *batch()) for _ in range(2)]
    first, again = ({name: value for name, (value, _) in one.items()} for one in found)
    assert first == again
    assert set(first) == set(SCORES)
    assert all(seconds > 0 for _, seconds in found[0].values())
    other = zero_cost_scores(fresh_model(config, 2, CPU), *batch())
    assert any(other[name][0] != value for name, value in first.items())


def test_scores_leave_the_network_and_the_randomness_alone() -> None:
    model = fresh_model(drawn(0), 0, CPU).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    zero_cost_scores(model, *batch())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[n]) for n, tensor in model.state_dict().items())
    assert all(w.grad is None for w in model.parameters())
    assert [module.training for module in model.modules()] == modes
    assert not any(module._forward_hooks for module in model.modules())


def test_deeper_and_wider_networks_score_higher() -> None:
    tree = drawn(0).to_tree()
    stage = tree["stages"][0] | {"token_mixer": "mhsa", "head_dim": 16}
    small, large = (
        ModelConfig.model_validate(tree | {"stages": [stage | size]})
        for size in ({"depth": 1, "embed_dim": 16}, {"depth": 3, "embed_dim": 48})
    )
    few, many = (zero_cost_scores(fresh_model(c, 0, CPU), *batch()) for c in (small, large))
    assert all(many[name][0] > few[name][0] for name in ("naswot", "synflow", "dss"))
    assert many["az_expressivity"][0] > few["az_expressivity"][0]


def test_blocks_are_found_with_and_without_a_schedule_of_passes() -> None:
    tree = drawn(0).to_tree()
    stage = tree["stages"][0] | {"token_mixer": "mhsa", "head_dim": 16}
    plain = {key: value for key, value in tree.items() if key != "groups"} | {"stages": [stage]}
    found = []
    for config in (plain, plain | {"groups": "[1,1]"}):
        model = fresh_model(ModelConfig.model_validate(config), 0, CPU)
        scores = zero_cost_scores(model, *batch())
        assert scores["az_expressivity"][0] > 0
        found.append(scores["dss"][0])
    assert found[0] != found[1]


def test_a_network_of_inverted_residuals_has_every_score() -> None:
    tree = {key: value for key, value in drawn(0).to_tree().items() if key != "groups"}
    stage = {"token_mixer": "mbconv", "depth": 2, "embed_dim": 16}
    config = ModelConfig.model_validate(tree | {"stages": [stage]})
    assert set(zero_cost_scores(fresh_model(config, 0, CPU), *batch())) == set(SCORES)


class Linear(nn.Module):
    """A block that multiplies each token by a matrix."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.matrix = nn.Parameter(matrix)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        return x @ self.matrix


class Chain(Stage):
    """A stage of these blocks on the pixels of images, which halves the grid before the last."""

    def __init__(self, *matrices: Tensor, halves: bool = False) -> None:
        nn.Module.__init__(self)
        self.blocks = nn.ModuleList(map(Linear, matrices))
        self.halves = halves
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor, *args: object) -> Tensor:
        tokens, grid = to_tokens(x) * self.scale, (8, 8)
        *first, last = self.blocks
        for block in first:
            tokens = block(tokens, grid)
        if self.halves:
            tokens, grid = to_tokens(pixel_unshuffle(to_picture(tokens, grid), 2)), (4, 4)
        return last(tokens, grid).mean(1)  # type: ignore[no-any-return]


def colours() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(64, 4, 8, 8, generator=draw), torch.zeros(64, dtype=torch.long)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_trainability_is_that_of_the_norm_of_what_blocks_do_to_gradients(scale: float) -> None:
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1)))[0]
    chain = Chain(rotation, scale * rotation)
    found = zero_cost_scores(chain, *colours())["az_trainability"][0]
    assert found == pytest.approx((2 - scale - 1 / scale) / 2, abs=0.05)


def test_four_tokens_are_one_of_four_times_the_channels_where_a_stage_halves_the_grid() -> None:
    """So a rotation of these channels keeps the gradient's length."""
    rotation = torch.linalg.qr(torch.randn(16, 16, generator=torch.Generator().manual_seed(1)))[0]
    chain = Chain(torch.eye(4), rotation, halves=True)
    found = zero_cost_scores(chain, *colours())["az_trainability"][0]
    assert found == pytest.approx(0.0, abs=0.03)


def test_progressivity_is_the_smallest_rise_of_entropy() -> None:
    """White images have all of log 4; blocks that keep two, then one of the channels lose it."""
    two, one = torch.diag(torch.tensor([1.0, 1, 0, 0])), torch.diag(torch.tensor([1.0, 0, 0, 0]))
    found = zero_cost_scores(Chain(torch.eye(4), two), *colours())
    assert found["az_progressivity"][0] == pytest.approx(-math.log(2), abs=0.01)
    assert found["az_expressivity"][0] == pytest.approx(math.log(4) + math.log(2), abs=0.01)
    found = zero_cost_scores(Chain(one, torch.eye(4)), *colours())
    assert found["az_progressivity"][0] == pytest.approx(-math.log(4), abs=0.01)


def test_pyramids_with_a_class_token_have_every_score() -> None:
    tree = {key: value for key, value in drawn(0).to_tree().items() if key != "groups"}
    stages = [{"token_mixer": "mhsa", "embed_dim": dim, "head_dim": 4} for dim in (8, 16)]
    config = ModelConfig.model_validate(tree | {"stages": stages, "class_token": True})
    assert set(zero_cost_scores(fresh_model(config, 0, CPU), *batch())) == set(SCORES)


class Mixing(Identity):
    """A token mixer of these layers."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor, *args: object) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def test_dss_takes_a_1x1_convolution_for_the_linear_layer_that_it_is() -> None:
    linear, pointwise = nn.Linear(6, 4, bias=False), PointwiseConv(6, 4)
    pointwise.weight.data = linear.weight.detach()[..., None, None]
    x, y = torch.ones(3, 6, 1, 1), torch.zeros(3, dtype=torch.long)
    found = [
        zero_cost_scores(nn.Sequential(Mixing(*layers), nn.Flatten()), x, y)["dss"][0]
        for layers in ((nn.Flatten(), linear), (pointwise,))
    ]
    nuclear = torch.linalg.matrix_norm(linear.weight.detach().abs(), "nuc")
    assert found == pytest.approx([(nuclear * 24**0.5).log().item()] * 2)


def test_scores_of_one_layer_by_hand() -> None:
    x, y = batch(3)
    layer = nn.Linear(64, 10)
    model = nn.Sequential(nn.Flatten(), layer, nn.ReLU())
    out = model(x)
    code = (layer(x.flatten(1)) > 0).double()
    kernel = code @ code.T + (1 - code) @ (1 - code).T
    (gradient,) = torch.autograd.grad(cross_entropy(out, y), layer.weight)
    expected = {
        "naswot": torch.logdet(kernel),
        "snip": (gradient * layer.weight).abs().sum().log(),
        "synflow": layer.weight.abs().sum().log(),
    }
    found = zero_cost_scores(model, x, y)
    for name, value in expected.items():
        assert found[name][0] == pytest.approx(value.item()), name


def test_the_flow_passes_norms_as_if_they_were_not_there() -> None:
    x, y = batch(3)
    layer = nn.Linear(64, 10)
    bare = nn.Sequential(nn.Flatten(), layer)
    normed = nn.Sequential(nn.Flatten(), layer, nn.LayerNorm(10), nn.BatchNorm1d(10))
    found = [zero_cost_scores(model, x, y)["synflow"][0] for model in (bare, normed)]
    assert found[0] == pytest.approx(found[1])


def test_a_network_without_activations_has_no_naswot() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    found = zero_cost_scores(model, *batch())
    assert not {"naswot", "dss", *AZ_PARTS} & set(found)
    assert {"snip", "synflow"} <= set(found)
    assert not any(isinstance(module, TokenMixer) for module in model.modules())
