"""The class token's row comes last: each token gets the mixture of the next one."""

from __future__ import annotations

import pytest
import torch

from tests.nn.graft.networks import swin, vit
from vitnas.errors import ConfigError
from vitnas.nn.graft import graft


def test_each_token_gets_the_mixture_of_the_next_one() -> None:
    first, last = vit(), vit()
    graft(first, mixer="cska")
    graft(last, mixer="cska", class_row="last")
    last.load_state_dict(first.state_dict())
    x = torch.randn(2, 17, 24)
    wanted, found = (model.blocks[0].attn(x) for model in (first, last))
    torch.testing.assert_close(found, wanted.roll(-1, dims=1))


def test_a_masked_diagonal_is_that_of_the_rows_as_they_are() -> None:
    model, maps = vit(), []
    graft(model, mixer="cska", class_row="last", mask_diagonal=True)
    mixer = model.blocks[0].attn
    mixer.mixer.attn_drop.register_forward_hook(lambda _, __, out: maps.append(out))
    mixer(torch.randn(1, 17, 24))
    assert not maps[0].diagonal(dim1=-2, dim2=-1).any()


def test_without_a_class_token_there_is_no_such_row() -> None:
    with pytest.raises(ConfigError, match=r"class_row = 'last'.*has none.*nearest: first"):
        graft(swin(), mixer="cska", class_row="last")


def test_it_is_a_field_of_cska_alone() -> None:
    with pytest.raises(ConfigError, match=r"class_row.*ska does not read it"):
        graft(vit(), mixer="ska", class_row="last")
