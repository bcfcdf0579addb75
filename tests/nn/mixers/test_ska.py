"""Static-key attention."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch

from tests.contracts import STATIC_KEY, MixerContract, place_of, tokens_for
from vitnas.nn.mixers import Place, Tap, TokenMixer, build_mixer


class TestContract(MixerContract):
    mixer = "ska"
    variants: ClassVar = {
        **STATIC_KEY,
        "two passes": {"groups": [1, 1]},
    }


def build(**fields: Any) -> tuple[TokenMixer, Place]:
    torch.manual_seed(0)
    place = place_of("ska", **{"key_init": "randn", **fields})
    return build_mixer(place).eval(), place


@pytest.mark.parametrize("qk_scale", [True, False])
def test_is_the_formula_head_by_head(qk_scale: bool) -> None:
    """Algorithm 1 with separate projections, one image and one head at a time."""
    mixer, place = build(qk_scale=qk_scale)
    x = tokens_for(place)
    w_query, w_value = mixer.qv.weight.split(16)
    b_query, b_value = mixer.qv.bias.split(16)
    for image, out in zip(x, mixer(x, place.grid), strict=True):
        query, value = image @ w_query.T + b_query, image @ w_value.T + b_value
        heads = []
        for head, key in enumerate(mixer.static_key):
            part = slice(4 * head, 4 * head + 4)
            logits = query[:, part] @ key.T / (2 if qk_scale else 1)
            heads.append(logits.softmax(-1) @ value[:, part])
        torch.testing.assert_close(out, mixer.proj(torch.cat(heads, dim=1)))


def test_key_covers_the_class_token() -> None:
    mixer, _ = build(class_token=True)
    assert mixer.static_key.shape == (4, 25, 4)


def test_is_bound_to_positions() -> None:
    """Permuting the tokens is not the same as permuting the result, unlike for a dynamic key."""
    mixer, place = build()
    x, order = tokens_for(place), torch.arange(24).flip(0)
    shuffled = mixer(x[:, order], place.grid)
    assert not torch.allclose(shuffled, mixer(x, place.grid)[:, order], atol=1e-3)


@pytest.mark.parametrize(("init", "std"), [("trunc_normal", 0.02), ("randn", 1.0)])
def test_initial_key(init: str, std: float) -> None:
    torch.manual_seed(0)
    mixer = build_mixer(place_of("ska", embed_dim=512, num_heads=8, key_init=init))
    assert mixer.static_key.std().item() == pytest.approx(std, rel=0.05)


def test_the_tapped_key_is_the_static_one() -> None:
    mixer, place = build()
    x, taps = tokens_for(place), list[Tap]()
    out = mixer(x, place.grid, 0, taps)
    assert torch.equal(out, mixer(x, place.grid))
    (tap,) = taps
    for key in tap.key:
        assert torch.equal(key, mixer.static_key)
    query, value = mixer.qv(x).chunk(2, dim=-1)
    torch.testing.assert_close(tap.query.transpose(1, 2).flatten(2), query)
    torch.testing.assert_close(tap.value.transpose(1, 2).flatten(2), value)


def test_each_window_is_a_picture_of_its_own_with_its_own_key() -> None:
    """On a grid of 4x6 tokens, four windows of 2x3."""
    mixer, place = build(windows=2)
    whole, small = tokens_for(place), place_of("ska", img_size=(2, 3))
    out = mixer(whole, place.grid).unflatten(1, (4, 6))
    alone = build_mixer(small).eval()
    for number in range(4):
        down, across = divmod(number, 2)
        rows, columns = slice(2 * down, 2 * down + 2), slice(3 * across, 3 * across + 3)
        state = mixer.state_dict()
        state["static_key"] = state["static_key"][:, 6 * number : 6 * number + 6]
        alone.load_state_dict(state)
        picture = whole.unflatten(1, (4, 6))[:, rows, columns].flatten(1, 2)
        torch.testing.assert_close(out[:, rows, columns].flatten(1, 2), alone(picture, (2, 3)))


def test_a_key_of_windows_is_tapped_in_the_order_of_the_tokens() -> None:
    mixer, place = build(windows=2)
    taps = list[Tap]()
    mixer(tokens_for(place), place.grid, 0, taps)
    key, own = taps[0].key[0], mixer.static_key
    assert torch.equal(key[:, :3], own[:, :3])
    assert torch.equal(key[:, 3:6], own[:, 6:9])  # the first row of the second window
    assert torch.equal(key[:, 6:9], own[:, 3:6])


def test_a_key_is_as_long_as_convolved_values() -> None:
    """As in SKA's code for CvT: written out for one image."""
    mixer, place = build(kernel_qkv=3, stride_kv=2, class_token=True)
    x = tokens_for(place)
    query, value = (mixer.convs[name](x, place.grid) for name in ("query", "value"))
    assert mixer.static_key.shape[1] == value.shape[1] == 2 * 3 + 1
    query = query @ mixer.qv.weight[:16].T + mixer.qv.bias[:16]
    value = value @ mixer.qv.weight[16:].T + mixer.qv.bias[16:]
    heads = zip(query.chunk(4, -1), mixer.static_key, value.chunk(4, -1), strict=True)
    mixed = [(0.5 * q @ k.T).softmax(-1) @ v for q, k, v in heads]
    torch.testing.assert_close(mixer(x, place.grid), mixer.proj(torch.cat(mixed, -1)))
