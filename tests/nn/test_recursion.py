"""Blocks that are passed through several times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.contracts import WIDTH, place_of, tokens_for
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.cost.counter import measure_cost
from vitnas.nn import build_model
from vitnas.nn.block import Block
from vitnas.nn.mixers import Place, Tap
from vitnas.nn.recursion import NonLinearLayer, RecursiveBlock


def build(groups: list[int], **fields: Any) -> tuple[RecursiveBlock, Place]:
    torch.manual_seed(0)
    place = place_of("mhsa", groups=groups, mlp_ratio=2.0, **{"nll_ratio": 1.0, **fields})
    return RecursiveBlock(place).eval(), place


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def network(
    groups: list[int], nll_ratio: float, token_mixer: str = "mhsa", **fields: str
) -> ModelConfig:
    stage = {
        "token_mixer": token_mixer,
        "depth": 2,
        "embed_dim": 32,
        "groups": groups,
        "mlp_ratio": 2.0,
        "nll_ratio": nll_ratio,
        **fields,
    }
    tree = {"img_size": 32, "stem": {"stride": 8}, "residual": "lrc", "stages": [stage]}
    return validate(ModelConfig, tree)


def test_is_the_unrolled_loop() -> None:
    """SReT, Eq. 6: pass 1, NLL 1, pass 2, NLL 2, ..., the last NLL included."""
    recursive, place = build([4, 2, 1])
    x = tokens_for(place)
    expected = x
    for pass_index in range(3):
        expected = recursive.block(expected, place.grid, pass_index)
        expected = recursive.nlls[pass_index](expected)
    assert len(recursive.nlls) == 3
    torch.testing.assert_close(recursive(x, place.grid), expected)
    assert not torch.allclose(expected, recursive.block(x, place.grid))


def test_the_external_loop_passes_all_blocks_before_any_again() -> None:
    """SReT, Section 5.2: one non-linear layer after each round."""
    config = network([4, 1], 1.0, loop="external")
    stage = build_model(config).eval().stages[0]
    x, grid = torch.randn(2, 16, 32), (4, 4)
    expected, seen = x, []
    for pass_index in range(2):
        for block in stage.blocks:
            expected = block.block(expected, grid, pass_index)
            seen.append(expected)
        expected = stage.blocks[-1].nlls[pass_index](expected)
    taken: list[torch.Tensor] = []
    torch.testing.assert_close(stage(x, take=[0, 1], taken=taken), expected)
    torch.testing.assert_close(taken, [seen[2], expected])
    assert not torch.allclose(expected, build_model(network([4, 1], 1.0)).eval().stages[0](x))
    assert closed_form(config).num_params == measure_cost(config).num_params
    assert config.stages[0].num_nlls == 2
    stage.set_grad_checkpointing()
    torch.testing.assert_close(stage(x), expected)


def test_the_external_loop_taps_the_last_round() -> None:
    config = network([1, 1], 1.0, loop="external")
    tree = config.to_tree() | {"broad": {"gamma": 1.0}}
    stage, taps = build_model(validate(ModelConfig, tree)).stages[0], list[Tap]()
    stage(torch.randn(1, 16, 32), taps)
    assert len(taps) == 2


def test_without_nll_it_is_the_block_twice() -> None:
    recursive, place = build([1, 1], nll_ratio=0.0)
    x = tokens_for(place)
    expected = recursive.block(recursive.block(x, place.grid), place.grid)
    assert torch.equal(recursive(x, place.grid), expected)
    assert count(recursive) == count(recursive.block)


def test_nll_is_a_residual_mlp_on_a_norm() -> None:
    """SReT, Eq. 10, with zeta and theta."""
    torch.manual_seed(0)
    place = place_of("mhsa", groups=[1, 1], nll_ratio=0.7, residual="lrc")
    nll, x = NonLinearLayer(place), tokens_for(place)
    assert nll.mlp.fc1.weight.shape == (int(0.7 * WIDTH), WIDTH)
    with torch.no_grad():
        nll.residual.branch.fill_(2.0)
        nll.residual.identity.fill_(3.0)
    torch.testing.assert_close(nll(x), 2 * nll.mlp(nll.norm(x)) + 3 * x)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["batchnorm", "layernorm"])
def test_a_trained_network_scores_as_it_trains(kind: str) -> None:
    """Each pass has statistics of its own: one mean for all gave a network of 98 % 20 %."""
    tree = network([1, 1, 1], 1.0).to_tree() | {"norm": kind}
    model = build_model(validate(ModelConfig, tree))
    images = torch.randn(64, 3, 32, 32)
    with torch.no_grad():
        for weights in model.stages.parameters():
            weights.mul_(4)  # fresh weights hardly change a token, trained ones do
        for _ in range(100):
            trained = model.train()(images)
        assert torch.allclose(model.eval()(images), trained, rtol=0.02, atol=0.02)


def test_passes_share_the_weights_of_batch_norm() -> None:
    one, three = (build([1] * passes, norm="batchnorm", nll_ratio=0.0)[0] for passes in (1, 3))
    assert count(three) == count(one)
    assert three.state_dict().keys() > one.state_dict().keys()


def test_nlls_have_weights_of_their_own() -> None:
    recursive, _ = build([1, 1], residual="lrc")
    first, second = (dict(nll.named_parameters()) for nll in recursive.nlls)
    assert set(first) == set(second)
    assert all(first[name] is not second[name] for name in first)
    assert not torch.equal(first["mlp.fc1.weight"], second["mlp.fc1.weight"])


def test_one_pass_with_one_group_is_a_plain_block() -> None:
    model = build_model(network([1], nll_ratio=1.0))
    assert all(type(block) is Block for block in model.stages[0].blocks)
    assert not any("nll" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize("mixer", ["mhsa", "ska", "dwconv"])
def test_passes_add_flops_and_no_parameters_but_nlls(mixer: str) -> None:
    one = measure_cost(network([1], 1.0, mixer))
    two = measure_cost(network([1, 1], 0.0, mixer))
    four = measure_cost(network([1] * 4, 0.0, mixer))
    assert one.num_params == two.num_params == four.num_params
    assert two.flops > one.flops
    assert four.flops - two.flops == 2 * (two.flops - one.flops)
    with_nll = measure_cost(network([1] * 4, 1.0, mixer))
    nll = 2 * 32 * 32 + 2 * 32 + 2 * 32 + 2  # MLP, norm, LRC
    assert with_nll.num_params - four.num_params == 2 * 4 * nll


def test_a_shared_weight_appears_once_and_survives_save_and_load(tmp_path: Path) -> None:
    config = network([2, 1], 1.0)
    model, other = build_model(config).eval(), build_model(config).eval()
    names = [name for name in model.state_dict() if "block.mixer.qkv.weight" in name]
    assert len(names) == config.stages[0].depth
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    x = torch.randn(2, 3, 32, 32)
    assert torch.equal(model(x), other(x))
    with torch.no_grad():  # still one tensor for both passes
        other.stages[0].blocks[0].block.mixer.proj.weight.zero_()
        other.stages[0].blocks[0].block.mixer.proj.bias.zero_()
    recursive, tokens = other.stages[0].blocks[0], torch.randn(1, 16, 32)
    for pass_index in (0, 1):
        out = recursive.block.mixer(tokens, (4, 4), pass_index)
        assert not out.any()


def test_gradients_of_the_passes_add_up() -> None:
    recursive, place = build([1, 1], nll_ratio=0.0)
    x = tokens_for(place)
    recursive(x, place.grid).square().sum().backward()
    both = recursive.block.mixer.qkv.weight.grad.clone()
    recursive.zero_grad()
    with torch.no_grad():
        middle = recursive.block(x, place.grid)
    recursive.block(middle, place.grid).square().sum().backward()
    last = recursive.block.mixer.qkv.weight.grad
    assert not torch.allclose(both, last, rtol=1e-3)


def test_only_the_last_pass_is_tapped() -> None:
    recursive, place = build([4, 1])
    x, taps = tokens_for(place), list[Tap]()
    recursive(x, place.grid, taps)
    assert len(taps) == 1
    second = recursive.nlls[0](recursive.block(x, place.grid, 0))
    expected = list[Tap]()
    recursive.block(second, place.grid, 1, expected)
    for ours, theirs in zip(taps[0][:3], expected[0][:3], strict=True):
        assert torch.equal(ours, theirs)
