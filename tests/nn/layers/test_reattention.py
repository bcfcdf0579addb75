"""Re-attention: Norm(Theta^T A)."""

from __future__ import annotations

import pytest
import torch

from tests.contracts import place_of
from vitnas.nn.layers.reattention import Reattention
from vitnas.nn.mixers import build_mixer


def maps() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, 4, 5, 5, generator=generator).softmax(-1)


def test_starts_as_the_identity_without_norm() -> None:
    assert torch.equal(Reattention(4, "none")(maps()), maps())


def test_batch_norm_is_over_heads() -> None:
    """In training each head's maps come out with mean 0 and deviation 1 over the batch."""
    out = Reattention(4, "batch").train()(maps())
    torch.testing.assert_close(out.mean(dim=(0, 2, 3)), torch.zeros(4), atol=1e-5, rtol=0)
    assert (out.var(dim=(0, 2, 3), unbiased=False) - 1).abs().max() < 0.02


def test_layer_norm_is_over_the_head_axis() -> None:
    """001's code: every (i, j) is normalised over its h values."""
    out = Reattention(4, "layer")(maps())
    torch.testing.assert_close(out.mean(dim=1), torch.zeros(2, 5, 5), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("norm", "bias", "params"),
    [("batch", True, 16 + 4 + 8), ("layer", False, 16 + 8), ("none", True, 16 + 4)],
)
def test_parameters(norm: str, bias: bool, params: int) -> None:
    module = Reattention(4, norm, bias)
    assert sum(parameter.numel() for parameter in module.parameters()) == params


def test_deepvits_180_parameters() -> None:
    assert sum(parameter.numel() for parameter in Reattention(12).parameters()) == 180


def test_every_entry_of_theta_learns_from_the_start() -> None:
    module = Reattention(4, "batch").train()
    weights = torch.randn(2, 4, 5, 5, generator=torch.Generator().manual_seed(1))
    (module(maps()) * weights).sum().backward()
    assert module.theta.weight.grad.abs().min() > 1e-4


@pytest.mark.parametrize("eps", [1e-6, 1e-5])
def test_layer_norm_has_its_own_epsilon(eps: float) -> None:
    """001's code normalises with PyTorch's 1e-5; entries of a map are so small that it matters."""
    wanted_eps = {} if eps == 1e-5 else {"norm_eps": eps}
    reattention = {"norm": "layer", "bias": False, **wanted_eps}
    place = place_of("mhsa", reattention_blocks=1, reattention=reattention, norm_eps=1e-3)
    module = build_mixer(place).get_submodule("reattention").double()
    attention = (maps() / 1000).double()
    mixed = torch.einsum("bhij,hg->bgij", attention, module.theta.weight[:, :, 0, 0].T)
    wanted = torch.nn.functional.layer_norm(mixed.permute(0, 2, 3, 1), (4,), eps=eps)
    found = module(attention)
    torch.testing.assert_close(found, wanted.permute(0, 3, 1, 2), atol=1e-14, rtol=0)
