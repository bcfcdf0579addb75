"""A table over positions for another grid, against timm's own."""

from __future__ import annotations

import pytest
import torch
from timm.layers import resample_abs_pos_embed

from vitnas.nn.layers.resizing import TokenLayout, resize_tokens


@pytest.mark.parametrize("prefix", [0, 1])
@pytest.mark.parametrize("axis", [1, 2, -2])
def test_it_is_timms_resampling(prefix: int, axis: int) -> None:
    table = torch.randn(1, prefix + 4 * 6, 5, generator=torch.Generator().manual_seed(0))
    old, new = TokenLayout((4, 6), prefix), TokenLayout((7, 5), prefix)
    found = resize_tokens(table.movedim(1, axis), axis, old, new).movedim(axis, 1)
    theirs = resample_abs_pos_embed(table, [7, 5], [4, 6], num_prefix_tokens=prefix)
    assert found.shape == (1, new.tokens, 5)
    torch.testing.assert_close(found, theirs)
    assert resize_tokens(table.half(), 1, old, new).dtype == torch.float16


def test_the_same_grid_gives_a_copy() -> None:
    table = torch.randn(3, 4, requires_grad=True)
    found = resize_tokens(table, 1, TokenLayout((2, 2), 0), TokenLayout((2, 2), 0))
    assert torch.equal(found, table)
    assert not found.requires_grad
    assert found.data_ptr() != table.data_ptr()
