"""Seeing maps: the right ones, in the right order, and nothing left behind."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn

from tests.diagnose.networks import CSKA, MHSA, SKA, hooks_of, network, pictures, small_swin
from tests.nn.graft.networks import images, lvt, ska_swin
from vitnas.diagnose.hooks import as_tokens, to_true_order, token_order, unfused, watching
from vitnas.diagnose.layers import find_places
from vitnas.errors import VitnasError
from vitnas.nn.graft.apply import graft


def maps_of(model: nn.Module, x: Tensor) -> dict[int, Tensor]:
    seen: dict[int, Tensor] = {}
    with watching(model, find_places(model), see_map=seen.__setitem__):
        model(x)
    return seen


def maps_of_block(block: nn.Module, x: Tensor) -> list[Tensor]:
    """Those of its attention of the tokens `x`."""
    seen: dict[int, Tensor] = {}
    model = nn.ModuleDict({"blocks": nn.ModuleList([block])})
    attention: Any = block.attn
    with watching(model, find_places(model), see_map=seen.__setitem__), torch.no_grad():
        attention(x)
    return list(seen.values())


def heads(x: Tensor, number: int) -> Tensor:
    return torch.unflatten(x, 2, (number, -1)).transpose(1, 2)


@pytest.mark.parametrize("stage", [MHSA, SKA, CSKA])
@pytest.mark.parametrize("class_token", [False, True])
def test_rows_are_distributions_over_all_tokens(stage: dict[str, Any], class_token: bool) -> None:
    model = network(stage, class_token=class_token)
    attention = maps_of(model, pictures())[0]
    tokens = 16 + class_token
    assert attention.shape == (3, 2, tokens, tokens)
    torch.testing.assert_close(attention.sum(-1), torch.ones(3, 2, tokens))


@pytest.mark.parametrize("permute", ["always", "second", "never"])
def test_group_maps_in_true_order_give_the_mixers_own_output(permute: str) -> None:
    """map @ value with all tokens at their places = what group attention gives, pass by pass."""
    model = network(MHSA | {"groups": [4, 2]}, permute=permute)
    mixer: Any = model.stages[0].blocks[0].block.mixer
    calls: list[tuple[Tensor, Tensor]] = []
    handle = mixer.register_forward_hook(lambda m, args, out: calls.append((args[0], out)))
    maps = maps_of(model, pictures())
    handle.remove()
    for index, (x, out) in enumerate(calls):
        value = torch.unflatten(mixer.qkv(x), 2, (3, 2, 8))[:, :, 2].transpose(1, 2)
        mixed = (maps[index] @ value).transpose(1, 2).flatten(2)
        torch.testing.assert_close(mixer.proj(mixed), out)
        groups = (4, 2)[index]
        assert (maps[index] > 0).sum(-1).eq(16 // groups).all()


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_window_maps_in_true_order_give_the_mixers_own_output(mixer: str) -> None:
    model = network(MHSA | {"token_mixer": mixer, "windows": 2})
    module: Any = model.stages[0].blocks[0].mixer
    calls: list[tuple[Tensor, Tensor]] = []
    handle = module.register_forward_hook(lambda m, args, out: calls.append((args[0], out)))
    attention = maps_of(model, pictures())[0]
    handle.remove()
    x, out = calls[0]
    value = heads(module.qv(x).chunk(2, dim=-1)[1], module.num_heads)
    torch.testing.assert_close(module.proj((attention @ value).transpose(1, 2).flatten(2)), out)
    assert (attention > 0).sum(-1).eq(4).all()


def test_shifted_windows_in_true_order_give_swins_own_output() -> None:
    torch.manual_seed(0)
    model = small_swin(64, 4).eval()
    places = find_places(model)
    x = torch.randn(2, 3, 64, 64)
    seen: list[tuple[Tensor, Tensor]] = []
    block: Any = places[1].owner  # the shifted one
    assert any(block.shift_size)
    handle = block.norm1.register_forward_hook(lambda m, args, out: seen.append((args[0], out)))
    maps: dict[int, Tensor] = {}
    with watching(model, places, see_map=maps.__setitem__), torch.no_grad():
        model(x)
        normed = seen[0][1].flatten(1, 2)
        value = heads(block.attn.qkv(normed).chunk(3, dim=-1)[2], block.attn.num_heads)
        mixed = block.attn.proj((maps[1] @ value).transpose(1, 2).flatten(2))
        torch.testing.assert_close(mixed, block._attn(seen[0][1]).flatten(1, 2), atol=1e-4, rtol=0)
    handle.remove()
    assert maps[1].shape == (2, 2, 256, 256)


@pytest.mark.parametrize("mixer", ["attention", "ska"])
def test_shifted_windows_of_skas_swin_in_true_order_give_its_own_output(mixer: str) -> None:
    """Four windows in its first stage, and one in its second, which is shifted, too."""
    model: Any = ska_swin()
    if mixer == "ska":
        graft(model, mixer="ska")
    maps = maps_of(model, images())
    assert [maps[index].shape[-1] for index in range(4)] == [64, 64, 16, 16]
    blocks = [block for stage in model.stages for block in stage.blocks]
    for block, attention in zip(blocks, maps.values(), strict=True):
        x = torch.randn(2, attention.shape[-1], block.norm1.normalized_shape[0])
        (found,) = maps_of_block(block, x)
        inner, linear = block.attn, getattr(block.attn, "qkv", None)
        if linear is None:
            inner = block.attn.mixer
            linear = inner.qv
        value = heads(
            linear(x).chunk(3 if mixer == "attention" else 2, dim=-1)[-1], inner.num_heads
        )
        mixed = inner.proj((found @ value).transpose(1, 2).flatten(2))
        torch.testing.assert_close(mixed, block.attn(x), atol=1e-5, rtol=1e-4)


def test_windows_over_the_edge_are_refused() -> None:
    model = small_swin(32, 3)
    with pytest.raises(VitnasError, match="over the picture's edge"):
        token_order(find_places(model)[0], 9)


def test_reattention_shows_the_mixed_map() -> None:
    model = network(MHSA, reattention_blocks=1, reattention={"norm": "none", "bias": False})
    mixing: Any = model.stages[0].blocks[0].mixer.reattention
    before = maps_of(model, pictures())[0]
    with torch.no_grad():
        mixing.theta.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]])[:, :, None, None])
        swapped = maps_of(model, pictures())[0]
        mixing.theta.weight.mul_(2)
    torch.testing.assert_close(maps_of(model, pictures())[0], 2 * swapped)
    assert not torch.allclose(before, swapped)


def test_watching_changes_nothing_and_leaves_nothing() -> None:
    model = network(MHSA | {"depth": 2}).train()
    mixers: list[Any] = [block.mixer for block in model.stages[0].blocks]
    mixers[1].fused_attn = False
    model.stages[0].blocks[0].eval()
    modes = [module.training for module in model.modules()]
    with torch.no_grad():
        alone = model.eval()(pictures())
    for module, mode in zip(model.modules(), modes, strict=True):
        module.training = mode
    with watching(model, find_places(model), see_map=lambda i, a: None):
        assert not any(mixer.fused_attn for mixer in mixers)
        seen = model(pictures())
    torch.testing.assert_close(seen, alone)
    assert [module.training for module in model.modules()] == modes
    assert [mixer.fused_attn for mixer in mixers] == [True, False]
    assert not hooks_of(model)


def test_an_error_inside_leaves_nothing_either() -> None:
    model = network(MHSA)

    def fail(index: int, found: Tensor) -> None:
        raise RuntimeError("inside")

    with (
        pytest.raises(RuntimeError, match="inside"),
        watching(model, find_places(model), see_map=fail),
    ):
        model(pictures())
    mixer: Any = model.stages[0].blocks[0].mixer
    assert mixer.fused_attn
    assert not hooks_of(model)


def test_of_an_attention_that_runs_twice_the_last_map_is_seen() -> None:
    model = lvt()
    seen, taken = list[tuple[int, Tensor]](), list[Tensor]()
    places = find_places(model)
    last: Any = places[-1].tap
    last.register_forward_hook(lambda _, __, out: taken.append(out))
    with watching(model, places, see_map=lambda *found: seen.append(found)):
        model(torch.randn(2, 3, 16, 16))
        model(torch.randn(1, 3, 16, 16))
    assert [index for index, _ in seen] == [1, 2, 3, 4] * 2  # block 0 has CSA
    assert torch.equal(seen[3][1], taken[1])
    assert torch.equal(seen[7][1], taken[3])


def test_features_are_what_each_pass_gives() -> None:
    model = network(MHSA | {"groups": [1, 1], "nll_ratio": 1.0})
    block: Any = model.stages[0].blocks[0]
    seen: dict[int, Tensor] = {}
    with watching(model, find_places(model), see_features=seen.__setitem__):
        model(pictures())
    first = block.nlls[0]
    given: list[Tensor] = []
    handle = first.register_forward_hook(lambda m, args, out: given.append(out))
    model(pictures())
    handle.remove()
    torch.testing.assert_close(seen[0], given[0])
    assert not torch.allclose(seen[0], seen[1])


def test_timms_attention_is_unfused_and_restored() -> None:
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2)
    before = [block.attn.fused_attn for block in model.blocks]
    with unfused(model):
        assert not any(block.attn.fused_attn for block in model.blocks)
    assert [block.attn.fused_attn for block in model.blocks] == before


def test_pictures_become_tokens_whichever_way_round() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4)  # two channels, 3 x 4
    tokens = as_tokens(x)
    assert tokens.shape == (1, 12, 2)
    assert tokens[0, 5].tolist() == [5.0, 17.0]
    assert torch.equal(as_tokens(x.permute(0, 2, 3, 1), "NHWC"), tokens)
    with pytest.raises(VitnasError, match=r"must be tokens \(B, N, C\) or a picture"):
        as_tokens([x])


def test_true_order_by_hand() -> None:
    """Two images, groups {0, 2} and {3, 1}."""
    order = torch.tensor([[0, 2], [3, 1]])
    inner = torch.arange(16.0).reshape(4, 1, 2, 2)
    whole = to_true_order(inner, order)
    assert whole.shape == (2, 1, 4, 4)
    assert whole[0, 0].tolist() == [[0, 0, 1, 0], [0, 7, 0, 6], [2, 0, 3, 0], [0, 5, 0, 4]]
    assert whole[1, 0, 0].tolist() == [8, 0, 9, 0]
