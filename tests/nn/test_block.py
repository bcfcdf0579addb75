"""One block."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contracts import place_of, tokens_for
from vitnas.nn.block import Block
from vitnas.nn.mixers import Place, Tap


def build(token_mixer: str = "mhsa", **fields: Any) -> tuple[Block, Place]:
    torch.manual_seed(0)
    place = place_of(token_mixer, mlp_ratio=2.0, **fields)
    return Block(place).eval(), place


def by_hand(block: Block, x: Tensor, place: Place) -> Tensor:
    """Pre-norm with plain residuals."""
    x = x + block.mixer(block.norm1(x), place.grid)
    return x + block.mlp(block.norm2(x))


@pytest.mark.parametrize("mixer", ["mhsa", "cska", "dwconv", "identity"])
@pytest.mark.parametrize("residual", ["plain", "lrc", "lrc_branch", "lrc_identity", "scale"])
def test_is_pre_norm_and_every_residual_starts_plain(mixer: str, residual: str) -> None:
    block, place = build(mixer, residual=residual)
    x = tokens_for(place)
    torch.testing.assert_close(block(x, place.grid), by_hand(block, x, place))


def test_lrc_has_its_four_scalars() -> None:
    """SReT's alpha to delta, each scaling what it should."""
    block, place = build(residual="lrc")
    alpha, beta, gamma, delta = 2.0, 3.0, 5.0, 7.0
    with torch.no_grad():
        block.residual1.branch.fill_(alpha)
        block.residual1.identity.fill_(beta)
        block.residual2.branch.fill_(gamma)
        block.residual2.identity.fill_(delta)
    x = tokens_for(place)
    middle = alpha * block.mixer(block.norm1(x), place.grid) + beta * x
    expected = gamma * block.mlp(block.norm2(middle)) + delta * middle
    torch.testing.assert_close(block(x, place.grid), expected)


def test_mlp_ratio_0_leaves_norm_mlp_and_residual_out() -> None:
    torch.manual_seed(0)
    place = place_of("mhsa", mlp_ratio=0.0, residual="lrc")
    block, x = Block(place).eval(), tokens_for(place)
    assert {name.split(".")[0] for name, _ in block.named_parameters()} == {
        "norm1",
        "mixer",
        "residual1",
    }
    torch.testing.assert_close(block(x, place.grid), x + block.mixer(block.norm1(x), place.grid))


def test_dropped_branches_leave_the_identity_inside_the_learnable_residual() -> None:
    """Drop-path comes before LRC's scalars: a dropped image is beta * delta * x."""
    torch.manual_seed(0)
    place = place_of("mhsa", mlp_ratio=2.0, residual="lrc")
    block, x = Block(place, drop_path=0.9).train(), tokens_for(place, batch=64)
    with torch.no_grad():
        block.residual1.identity.fill_(3.0)
        block.residual2.identity.fill_(5.0)
    out = block(x, place.grid)
    dropped = [torch.allclose(a, 15 * b) for a, b in zip(out, x, strict=True)]
    assert 0.6 < sum(dropped) / len(dropped) < 0.95  # 0.9 * 0.9 expected
    kept = block.eval()(x, place.grid)
    assert not any(torch.allclose(a, 15 * b) for a, b in zip(kept, x, strict=True))


def test_taps_come_from_the_mixer() -> None:
    block, place = build()
    x, ours, mixers = tokens_for(place), list[Tap](), list[Tap]()
    block(x, place.grid, taps=ours)
    block.mixer(block.norm1(x), place.grid, taps=mixers)
    for a, b in zip(ours[0][:3], mixers[0][:3], strict=True):
        assert torch.equal(a, b)


def test_branch_scale_multiplies_both_branches() -> None:
    """DeepViT's code for S and L: twice each branch."""
    doubled, place = build(branch_scale=2.0)
    x = tokens_for(place)
    middle = x + 2.0 * doubled.mixer(doubled.norm1(x), place.grid)
    expected = middle + 2.0 * doubled.mlp(doubled.norm2(middle))
    torch.testing.assert_close(doubled(x, place.grid), expected)
