"""CvT has the sizes of its paper and looks like its attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.nn.graft.networks import cvt, images, ska_cvt
from vitnas.cost.operators import count_flops
from vitnas.errors import ConfigError
from vitnas.nn.graft.cvt import ConvAttention, CvT


@pytest.mark.slow
def test_cvt_13_has_the_papers_size() -> None:
    """Its Table 3 prints 20 M and 4.5 G."""
    model = CvT()
    params = sum(parameter.numel() for parameter in model.parameters())
    assert params / 1e6 == pytest.approx(20, abs=0.5)
    assert count_flops(model, (3, 224, 224)) / 1e9 == pytest.approx(4.5, abs=0.15)


def test_keys_and_values_are_a_quarter_of_the_tokens() -> None:
    attention, seen = ConvAttention(8, 2, (4, 6), prefix=1).eval(), []
    attention.fused_attn = False
    attention.attn_drop.register_forward_hook(lambda _, __, out: seen.append(out))
    x = torch.randn(3, 25, 8)
    mapped = attention(x)
    assert seen[0].shape == (3, 2, 25, 7)
    attention.fused_attn = True
    torch.testing.assert_close(attention(x), mapped)


def test_a_class_token_goes_round_the_convolutions() -> None:
    attention = ConvAttention(8, 2, (4, 4), prefix=1).eval()
    x = torch.randn(1, 17, 8)
    with torch.no_grad():
        for conv in attention.convs:
            conv[0].weight.zero_()
            conv[1].bias.fill_(1.0)
    other = x.clone()
    other[:, 1:] = 0.0  # what patches say is lost in the convolutions, what the token says is not
    torch.testing.assert_close(attention(x), attention(other))
    other[:, 0] = 0.0
    assert not torch.allclose(attention(x), attention(other))


@pytest.mark.parametrize("class_token", [True, False])
def test_reads_its_class_token_or_the_mean(class_token: bool) -> None:
    model = cvt(class_token=class_token)
    assert model(images()).shape == (2, 5)
    assert model.stages[-1].prefix == class_token
    assert model.stages[0].prefix == 0


def test_skas_code_has_gelu_by_a_sigmoid() -> None:
    x = torch.linspace(-3, 3, 7)
    torch.testing.assert_close(ska_cvt().stages[0].blocks[0].mlp.act(x), x * (1.702 * x).sigmoid())
    torch.testing.assert_close(cvt().stages[0].blocks[0].mlp.act(x), torch.nn.functional.gelu(x))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"depths": (1,)}, "argument"), ({"num_heads": (1, 5)}, "5 heads do not divide 24 channels")],
)
def test_lists_that_do_not_fit_are_an_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ska_cvt(**options)


def test_pictures_need_not_be_square() -> None:
    model = cvt(img_size=(16, 24))
    assert model(torch.zeros(1, 3, 16, 24)).shape == (1, 5)


def test_too_small_a_picture_is_an_error() -> None:
    with pytest.raises(ConfigError, match="img_size = 1: too small"):
        CvT(img_size=1)
