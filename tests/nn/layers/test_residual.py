"""Residual connections."""

from __future__ import annotations

import pytest
import timm.layers
import torch

from vitnas.config.parts import Residual
from vitnas.nn.layers.residual import DropPath, build_residual

PARAMS: dict[Residual, int] = {
    "plain": 0,
    "lrc": 2,
    "lrc_branch": 1,
    "lrc_identity": 1,
    "scale": 8,
}


@pytest.mark.parametrize(("kind", "params"), PARAMS.items())
def test_starts_as_the_plain_sum(kind: Residual, params: int) -> None:
    residual = build_residual(kind, 8)
    identity, branch = torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    assert torch.equal(residual(identity, branch), identity + branch)
    assert sum(parameter.numel() for parameter in residual.parameters()) == params


def test_lrc_scales_branch_and_identity() -> None:
    residual = build_residual("lrc", 8)
    with torch.no_grad():
        residual.branch.fill_(2.0)
        residual.identity.fill_(3.0)
    assert residual(torch.tensor(10.0), torch.tensor(1.0)).item() == 32.0


@pytest.mark.parametrize(("kind", "expected"), [("lrc_branch", 12.0), ("lrc_identity", 31.0)])
def test_lrc_on_one_branch_leaves_the_other_as_it_is(kind: Residual, expected: float) -> None:
    residual = build_residual(kind, 8)
    with torch.no_grad():
        for parameter in residual.parameters():
            parameter.fill_(2.0 if kind == "lrc_branch" else 3.0)
    assert residual(torch.tensor(10.0), torch.tensor(1.0)).item() == expected


def test_scale_is_per_channel_and_on_the_identity() -> None:
    residual = build_residual("scale", 2)
    with torch.no_grad():
        residual.scale.copy_(torch.tensor([2.0, 3.0]))
    out = residual(torch.tensor([[[10.0, 10.0]]]), torch.tensor([[[1.0, 1.0]]]))
    assert out.flatten().tolist() == [21.0, 31.0]


@pytest.mark.parametrize("drop_prob", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("training", [False, True])
def test_drop_path_is_timm_s(drop_prob: float, training: bool) -> None:
    x, found = torch.randn(50, 3, 2), []
    for layer in (DropPath(drop_prob), timm.layers.DropPath(drop_prob)):
        torch.manual_seed(0)
        found.append(layer.train(training)(x))
    assert torch.equal(*found)
