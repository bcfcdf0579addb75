"""Multi-head self-attention: whole, in groups, with re-attention."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
from timm.models.vision_transformer import Attention
from torch import Tensor

from tests.contracts import ATTENTION, WIDTH, MixerContract, place_of, tokens_for
from tests.nn.networks import randomised
from vitnas.nn.graft.cvt import ConvAttention
from vitnas.nn.mixers import Place, Tap, TokenMixer, build_mixer

REATTENTION = {"reattention_blocks": 1}


class TestContract(MixerContract):
    mixer = "mhsa"
    variants: ClassVar = {
        **ATTENTION,
        "relu": {"attn_act": "relu", "groups": [1, 4]},
        "star_relu": {"attn_act": "star_relu", "reattention_blocks": 1},
        "groups": {"groups": [4]},
        "groups of one token": {"groups": [24]},
        "second pass": {"groups": [8, 2], "permute": "second"},
        "windows": {"groups": [3], "permute": "never"},
        "permuted output": {"groups": [4], "permute_inverse": False},
        "re-attention": REATTENTION,
        "re-attention, layer norm": {**REATTENTION, "reattention": {"norm": "layer"}},
        "re-attention, no norm": {**REATTENTION, "reattention": {"norm": "none", "bias": False}},
        "re-attention, fewer keys": {**REATTENTION, "kernel_qkv": 3, "stride_kv": 2},
        "groups after convolutions": {"groups": [1, 4], "kernel_qkv": 3},
    }


def build(**fields: Any) -> tuple[TokenMixer, Place]:
    torch.manual_seed(0)
    place = place_of("mhsa", **fields)
    return build_mixer(place).eval(), place


def timms(mixer: TokenMixer) -> Attention:
    """timm's attention with the same weights."""
    attention = Attention(WIDTH, num_heads=4, qkv_bias=True)
    attention.load_state_dict(mixer.state_dict())
    return attention.eval()


def in_groups(attention: Attention, x: Tensor, order: Tensor, number: int) -> Tensor:
    """Attention inside groups, written out: the tokens of a group are taken from where they stand
    and put back there."""
    out = torch.empty_like(x)
    for members in order.chunk(number):
        out[:, members] = attention(x[:, members])
    return out


@pytest.mark.parametrize("class_token", [False, True])
def test_fewer_keys_are_cvts(class_token: bool) -> None:
    """After CvT's code, whose scale is over all channels, and over those of a head here."""
    mixer, place = build(kernel_qkv=3, stride_kv=2, class_token=class_token)
    theirs = ConvAttention(WIDTH, 4, place.grid, int(class_token))
    theirs.scale = (WIDTH // 4) ** -0.5
    randomised(mixer)
    for conv, part in zip(theirs.convs, ("query", "key", "value"), strict=True):
        conv[0].load_state_dict(mixer.convs[part].conv.state_dict())
        conv[1].load_state_dict(mixer.convs[part].norm.norm.state_dict())
    for name in ("qkv", "proj"):
        getattr(theirs, name).load_state_dict(getattr(mixer, name).state_dict())
    x = tokens_for(place)
    torch.testing.assert_close(mixer.eval()(x, place.grid), theirs.eval()(x))


def test_passes_have_statistics_of_their_own_behind_convolutions() -> None:
    mixer, place = build(kernel_qkv=3, groups=[1, 1])
    first, second = (mixer(tokens_for(place), place.grid, index) for index in (0, 1))
    torch.testing.assert_close(first, second)
    mixer.convs["query"].norm.later[0].running_mean.add_(1.0)
    assert not torch.allclose(mixer(tokens_for(place), place.grid, 1), second)
    assert torch.equal(mixer(tokens_for(place), place.grid, 0), first)


@pytest.mark.parametrize("class_token", [False, True])
def test_whole_is_timms_attention(class_token: bool) -> None:
    mixer, place = build(class_token=class_token)
    x = tokens_for(place)
    torch.testing.assert_close(mixer(x, place.grid), timms(mixer)(x))


def test_without_scale_logits_are_not_divided() -> None:
    mixer, place = build(qk_scale=False)
    x, attention = tokens_for(place), timms(mixer)
    attention.scale, attention.fused_attn = 1.0, False
    torch.testing.assert_close(mixer(x, place.grid), attention(x))


@pytest.mark.parametrize("number", [2, 3, 8, 24])
def test_groups_are_put_back_in_the_same_pass(number: int) -> None:
    mixer, place = build(groups=[number])
    order = mixer.shuffles["0"].order
    assert not torch.equal(order, torch.arange(place.num_tokens))
    x = tokens_for(place)
    expected = in_groups(timms(mixer), x, order, number)
    torch.testing.assert_close(mixer(x, place.grid), expected)


def test_training_draws_a_new_order_and_puts_it_back() -> None:
    mixer, place = build(groups=[4])
    mixer.train()
    x, outs = tokens_for(place), []
    for seed in (5, 6):
        torch.manual_seed(seed)
        order = torch.randperm(place.num_tokens)
        torch.manual_seed(seed)
        outs.append(mixer(x, place.grid))
        torch.testing.assert_close(outs[-1], in_groups(timms(mixer), x, order, 4))
    assert not torch.allclose(*outs)


def test_never_permuting_gives_contiguous_windows() -> None:
    mixer, place = build(groups=[4], permute="never")
    x = tokens_for(place)
    expected = in_groups(timms(mixer), x, torch.arange(place.num_tokens), 4)
    torch.testing.assert_close(mixer(x, place.grid), expected)


def test_second_permutes_from_the_second_pass_on() -> None:
    """The official code's form."""
    mixer, place = build(groups=[4, 2], permute="second")
    assert set(mixer.shuffles) == {"1"}
    x, attention = tokens_for(place), timms(mixer)
    first = in_groups(attention, x, torch.arange(place.num_tokens), 4)
    torch.testing.assert_close(mixer(x, place.grid, 0), first)
    second = in_groups(attention, x, mixer.shuffles["1"].order, 2)
    torch.testing.assert_close(mixer(x, place.grid, 1), second)


def test_without_inverse_the_output_stays_permuted() -> None:
    """SReT, Table 7, row P."""
    mixer, place = build(groups=[4], permute_inverse=False)
    x, order = tokens_for(place), mixer.shuffles["0"].order
    put_back = in_groups(timms(mixer), x, order, 4)
    torch.testing.assert_close(mixer(x, place.grid), put_back[:, order])


@pytest.mark.parametrize("permute", ["always", "second", "never"])
def test_one_group_never_permutes(permute: str) -> None:
    mixer, place = build(groups=[1, 1], permute=permute)
    assert not mixer.shuffles
    x = tokens_for(place)
    torch.testing.assert_close(mixer(x, place.grid, 1), timms(mixer)(x))


def test_reattention_with_identity_and_no_norm_is_mhsa() -> None:
    """Theta starts as the identity."""
    mixed, place = build(**REATTENTION, reattention={"norm": "none"})
    plain, _ = build()
    plain.load_state_dict(mixed.state_dict(), strict=False)
    x = tokens_for(place)
    torch.testing.assert_close(mixed(x, place.grid), plain(x, place.grid))


def test_reattention_mixes_the_maps_of_the_heads() -> None:
    """DeepViT's Eq. 3, written out with any Theta: A'_g = sum_h Theta_hg A_h + b_g."""
    mixer, place = build(**REATTENTION, reattention={"norm": "none"})
    theta, bias = torch.randn(4, 4), torch.randn(4)
    with torch.no_grad():
        mixer.reattention.theta.weight.copy_(theta.T[..., None, None])
        mixer.reattention.theta.bias.copy_(bias)
    x = tokens_for(place)
    query, key, value = mixer.qkv(x).reshape(3, 24, 3, 4, 4).permute(2, 0, 3, 1, 4)
    attention = (query @ key.mT / 4**0.5).softmax(-1)
    regenerated = torch.einsum("hg,bhij->bgij", theta, attention) + bias[:, None, None]
    expected = mixer.proj((regenerated @ value).transpose(1, 2).reshape(3, 24, 16))
    torch.testing.assert_close(mixer(x, place.grid), expected)


@pytest.mark.parametrize("fields", [{}, {"groups": [4]}, REATTENTION], ids=["g1", "g4", "re"])
def test_taps_hold_query_key_and_value_in_true_order(fields: dict[str, Any]) -> None:
    mixer, place = build(**fields)
    x, taps = tokens_for(place), list[Tap]()
    out = mixer(x, place.grid, 0, taps)
    assert torch.equal(out, mixer(x, place.grid))
    (tap,) = taps
    for index, part in enumerate(tap[:3]):
        rows = slice(WIDTH * index, WIDTH * (index + 1))
        projected = x @ mixer.qkv.weight[rows].T + mixer.qkv.bias[rows]
        torch.testing.assert_close(part.transpose(1, 2).flatten(2), projected)
