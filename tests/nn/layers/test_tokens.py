"""Tokens and pictures."""

from __future__ import annotations

import torch

from vitnas.nn.layers.tokens import to_picture, to_tokens


def test_rows_come_first() -> None:
    picture = torch.arange(6.0).reshape(1, 1, 2, 3)
    tokens = to_tokens(picture)
    assert tokens.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.equal(to_picture(tokens, (2, 3)), picture)
