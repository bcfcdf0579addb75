"""Tokens and pictures."""

from __future__ import annotations

import torch
from timm.models.swin_transformer import window_partition, window_reverse

from vitnas.nn.layers.tokens import from_windows, to_picture, to_tokens, to_windows


def test_rows_come_first() -> None:
    picture = torch.arange(6.0).reshape(1, 1, 2, 3)
    tokens = to_tokens(picture)
    assert tokens.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.equal(to_picture(tokens, (2, 3)), picture)


def test_windows_and_back() -> None:
    """The second image of two, on a grid of 4x6: four windows of 2x3, rows first."""
    tokens = torch.arange(96.0).reshape(2, 24, 2)
    windows = to_windows(tokens, (4, 6), 2)
    assert windows.shape == (8, 6, 2)
    assert torch.equal(windows[5], tokens[1, [3, 4, 5, 9, 10, 11]])
    assert torch.equal(from_windows(windows, (4, 6), 2), tokens)
    assert to_windows(tokens, (4, 6), 1) is from_windows(tokens, (4, 6), 1) is tokens


def test_windows_are_timm_s() -> None:
    tokens = torch.randn(3, 6 * 9, 4)
    windows = to_windows(tokens, (6, 9), 3)
    theirs = window_partition(tokens.unflatten(1, (6, 9)), (2, 3))
    assert torch.equal(windows, theirs.flatten(1, 2))
    assert torch.equal(
        from_windows(windows, (6, 9), 3), window_reverse(theirs, (2, 3), 6, 9).flatten(1, 2)
    )
