"""Layer norms."""

from __future__ import annotations

import torch

from vitnas.nn.layers.norm import build_norm


def test_bias_is_a_choice() -> None:
    assert [name for name, _ in build_norm(8).named_parameters()] == ["weight", "bias"]
    names = [name for name, _ in build_norm(8, "layernorm_nobias").named_parameters()]
    assert names == ["weight"]


def test_epsilon_is_1e_6() -> None:
    """Seen in what it does to a nearly constant vector: (x - mean) / sqrt(var + eps)."""
    x = torch.tensor([[-1e-3, 1e-3]], dtype=torch.float64)
    out = build_norm(2).double()(x)
    torch.testing.assert_close(out, x / (1e-6 + 1e-6) ** 0.5)
    wider = build_norm(2, eps=3e-6).double()(x)
    torch.testing.assert_close(wider, x / (1e-6 + 3e-6) ** 0.5)
