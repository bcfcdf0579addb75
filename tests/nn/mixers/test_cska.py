"""Convolutional static-key attention."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F

from tests.contracts import GRID, STATIC_KEY, MixerContract, place_of, tokens_for
from vitnas.nn.mixers import Place, Tap, TokenMixer, build_mixer


class TestContract(MixerContract):
    mixer = "cska"
    variants: ClassVar = {
        **STATIC_KEY,
        "1x1": {"key_kernel": 1},
        "5x5 and a class token": {"key_kernel": 5, "class_token": True},
        "wider than the grid": {"key_kernel": 9},
        "5x5 in windows": {"key_kernel": 5, "windows": 2},
    }


def build(**fields: Any) -> tuple[TokenMixer, Place]:
    torch.manual_seed(0)
    place = place_of("cska", **{"key_init": "randn", **fields})
    mixer = build_mixer(place).eval()
    torch.nn.init.normal_(mixer.key.bias)
    return mixer, place


@pytest.mark.parametrize("class_token", [False, True])
@pytest.mark.parametrize("qk_scale", [True, False])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_is_a_static_key_on_the_unfolded_query(
    class_token: bool, qk_scale: bool, kernel: int
) -> None:
    """The identity of Section 4.2: the grouped convolution is a product with a fixed key."""
    mixer, place = build(class_token=class_token, qk_scale=qk_scale, key_kernel=kernel)
    x, tokens = tokens_for(place), place.num_tokens
    query, value = mixer.qv(x).chunk(2, dim=-1)
    picture = query[:, class_token:].mT.reshape(3, 16, *GRID)
    length = 4 * kernel**2  # of a head's key
    unfolded = F.unfold(picture, kernel, padding=kernel // 2).reshape(3, 4, length, 24)
    key = mixer.key.weight.reshape(4, tokens, length)
    logits = unfolded.mT @ key.mT + mixer.key.bias.reshape(4, 1, tokens)
    if class_token:
        first = query[:, :1].reshape(3, 1, 4, 4).transpose(1, 2) @ mixer.class_key.mT
        logits = torch.cat([first, logits], dim=2)
    attention = (logits / (2 if qk_scale else 1)).softmax(-1)
    heads = attention @ value.reshape(3, tokens, 4, 4).transpose(1, 2)
    expected = mixer.proj(heads.transpose(1, 2).reshape(3, tokens, 16))
    torch.testing.assert_close(mixer(x, place.grid), expected)


def test_row_n_of_the_map_depends_on_the_neighbours_of_n_alone() -> None:
    mixer, place = build()
    x = tokens_for(place, batch=1)
    moved = x.clone()
    moved[:, 0] += 1.0  # row 0, column 0 of the grid
    query, other = (mixer.qv(tokens).chunk(2, dim=-1)[0] for tokens in (x, moved))
    changed = (mixer._logits(query, GRID) - mixer._logits(other, GRID)).abs().sum((0, 1, 3)) > 1e-6
    assert changed.nonzero().flatten().tolist() == [0, 1, 6, 7]


def test_class_token_has_a_key_of_its_own() -> None:
    mixer, _ = build(class_token=True)
    assert mixer.class_key.shape == (4, 25, 4)
    assert mixer.key.weight.shape == (4 * 25, 4, 3, 3)
    assert build()[0].class_key is None


@pytest.mark.parametrize(("init", "std"), [("trunc_normal", 0.02), ("randn", 1.0)])
def test_initial_key(init: str, std: float) -> None:
    torch.manual_seed(0)
    mixer = build_mixer(place_of("cska", embed_dim=64, class_token=True, key_init=init))
    assert mixer.key.weight.std().item() == pytest.approx(std, rel=0.05)
    assert mixer.class_key.std().item() == pytest.approx(std, rel=0.1)


def test_gives_nothing_to_broad_attention() -> None:
    """It has no key to give."""
    mixer, place = build()
    taps = list[Tap]()
    mixer(tokens_for(place), place.grid, 0, taps)
    assert taps == []


@pytest.mark.parametrize("kernel", [3, 5])
def test_each_window_is_a_picture_of_its_own_with_its_own_convolution(kernel: int) -> None:
    """On a grid of 4x6 tokens, four windows of 2x3, with zeros around each."""
    mixer, place = build(windows=2, key_kernel=kernel)
    whole = tokens_for(place)
    alone = build_mixer(place_of("cska", img_size=(2, 3), key_kernel=kernel)).eval()
    out = mixer(whole, place.grid).unflatten(1, (4, 6))
    for number in range(4):
        down, across = divmod(number, 2)
        rows, columns = slice(2 * down, 2 * down + 2), slice(3 * across, 3 * across + 3)
        state = mixer.state_dict()
        for name in ("key.weight", "key.bias"):
            state[name] = state[name].chunk(4)[number]
        alone.load_state_dict(state)
        picture = whole.unflatten(1, (4, 6))[:, rows, columns].flatten(1, 2)
        torch.testing.assert_close(out[:, rows, columns].flatten(1, 2), alone(picture, (2, 3)))
