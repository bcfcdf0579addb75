"""What the attention mixers share: the map where it is wanted, temperature, dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.contracts import place_of, tokens_for
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line
from vitnas.cost.closed_form import closed_form
from vitnas.cost.counter import measure_cost
from vitnas.nn import build_model
from vitnas.nn.mixers import Place, TokenMixer, build_mixer
from vitnas.nn.mixers.mhsa import SharedMapAttention

ATTENTION = ["mhsa", "ska", "cska"]


def build(token_mixer: str, **fields: Any) -> tuple[TokenMixer, Place]:
    torch.manual_seed(0)
    key_init = {} if token_mixer == "mhsa" else {"key_init": "randn"}
    place = place_of(token_mixer, **{**key_init, **fields})
    return build_mixer(place).eval(), place


def maps_of(mixer: TokenMixer, place: Place, module: str = "attn_drop") -> list[Tensor]:
    """Maps that pass through `module` when the mixer is asked to hold them."""
    found: list[Tensor] = []
    hook = getattr(mixer, module).register_forward_hook(lambda *call: found.append(call[2]))
    mixer.fused_attn = False
    mixer(tokens_for(place), place.grid)
    hook.remove()
    return found


@pytest.mark.parametrize("token_mixer", ATTENTION)
def test_holding_the_map_changes_nothing(token_mixer: str) -> None:
    mixer, place = build(token_mixer)
    fused = mixer(tokens_for(place), place.grid)
    mixer.fused_attn = False
    torch.testing.assert_close(mixer(tokens_for(place), place.grid), fused)


@pytest.mark.parametrize("token_mixer", ATTENTION)
def test_the_map_passes_through_attn_drop(token_mixer: str) -> None:
    mixer, place = build(token_mixer)
    (attention,) = maps_of(mixer, place)
    assert attention.shape == (3, 4, 24, 24)
    torch.testing.assert_close(attention.sum(-1), torch.ones(3, 4, 24))


def test_reattention_sees_the_map_after_it() -> None:
    mixer, place = build("mhsa", reattention_blocks=1, reattention={"norm": "none", "bias": False})
    with torch.no_grad():
        mixer.reattention.theta.weight.mul_(2.0)
    before, after = maps_of(mixer, place)[0], maps_of(mixer, place, "reattention")[0]
    torch.testing.assert_close(after, 2.0 * before)


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_reattention_is_multiplied_by_its_scale(norm: str) -> None:
    plain, place = build("mhsa", reattention_blocks=1, reattention={"norm": norm})
    scaled, _ = build("mhsa", reattention_blocks=1, reattention={"norm": norm, "scale": 3.0})
    expected = 3.0 * maps_of(plain, place, "reattention")[0]
    torch.testing.assert_close(maps_of(scaled, place, "reattention")[0], expected)


@pytest.mark.parametrize("token_mixer", ATTENTION)
def test_a_learned_temperature_divides_the_logits(token_mixer: str) -> None:
    """DeepViT, Eq. 4; it starts at 1, where it changes nothing."""
    plain, place = build(token_mixer)
    warm, _ = build(token_mixer, temperature={"kind": "learnable"})
    assert warm.tau.tolist() == [1.0]
    torch.testing.assert_close(maps_of(warm, place)[0], maps_of(plain, place)[0])
    with torch.no_grad():
        warm.tau.fill_(2.0)
    half, _ = build(token_mixer)
    half.scale /= 2
    for fused in (True, False):
        warm.fused_attn = half.fused_attn = fused
        x = tokens_for(place)
        torch.testing.assert_close(warm(x, place.grid), half(x, place.grid))


def test_a_linear_temperature_falls_to_its_last_value() -> None:
    """Over the attention blocks: the first has 1, the last `last`."""
    stages = [
        {"token_mixer": "dwconv", "embed_dim": 16},
        {"token_mixer": "mhsa", "depth": 3, "embed_dim": 16, "num_heads": 1},
    ]
    tree = {"img_size": 8, "stem": {"stride": 1}, "stages": stages}
    model = build_model(validate(ModelConfig, tree | {"temperature": {"kind": "linear"}}))
    scales = [block.mixer.scale for block in model.stages[1].blocks]
    assert scales == pytest.approx([1 / 4, 1 / 4 / 0.75, 1 / 4 / 0.5])


@pytest.mark.parametrize("token_mixer", ATTENTION)
@pytest.mark.parametrize("rate", ["attn_drop_rate", "proj_drop_rate"])
def test_dropout_acts_in_training_only(token_mixer: str, rate: str) -> None:
    mixer, place = build(token_mixer, **{rate: 0.5})
    plain, _ = build(token_mixer)
    x = tokens_for(place)
    torch.testing.assert_close(mixer(x, place.grid), plain(x, place.grid))
    mixer.train()
    assert not torch.allclose(mixer(x, place.grid), mixer(x, place.grid))


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "star_relu": lambda logits: 2.0 * F.relu(logits).square() + 0.5,
}


@pytest.mark.parametrize("token_mixer", ATTENTION)
@pytest.mark.parametrize("act", ACTIVATIONS)
def test_another_activation_stands_in_place_of_the_softmax(token_mixer: str, act: str) -> None:
    """SKA, Table 4: of the same logits, which are not divided by anything else."""
    soft, place = build(token_mixer)
    mixer, _ = build(token_mixer, attn_act=act)
    mixer.load_state_dict(soft.state_dict(), strict=False)
    if act == "star_relu":
        torch.nn.init.constant_(mixer.act.scale, 2.0)
        torch.nn.init.constant_(mixer.act.bias, 0.5)
    soft.act = torch.nn.Identity()
    (logits,), (found,) = maps_of(soft, place), maps_of(mixer, place)
    torch.testing.assert_close(found, ACTIVATIONS[act](logits))


def test_a_shared_map_is_activated_once() -> None:
    """By the block that makes it; the others have no activation of their own."""
    tree = reusing({"source": "shared"}).config.to_tree()
    tree["stages"][0]["attn_act"] = "star_relu"
    model = build_model(validate(ModelConfig, tree)).eval()
    assert [block.mixer.act is None for block in model.stages[0].blocks] == [False] * 2 + [True] * 2
    cost = closed_form(model.config)
    assert cost.num_params == sum(p.numel() for p in model.parameters())
    assert cost.flops == measure_cost(model.config).flops


@pytest.mark.parametrize("source", ["own", "shared"])
def test_mixed_maps_without_softmax_keep_their_function_on_a_finer_grid(source: str) -> None:
    """Constant tokens: every sum over four times as many tokens is divided by four."""
    tree = reusing({"source": source, "norm": "batch"}).config.to_tree()
    tree["stages"][0]["attn_act"] = "relu"
    model = build_model(validate(ModelConfig, tree | {"pos_embed": "none"}))
    torch.manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model(torch.randn(4, 3, 8, 8))  # BatchNorm's statistics of real maps
    images = torch.ones(1, 3, 16, 16) * torch.tensor([0.5, -1.0, 2.0])[:, None, None]
    before = model.eval()(images[..., :8, :8])
    model.resize(16)
    torch.testing.assert_close(model(images), before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("token_mixer", ["ska", "cska"])
def test_without_projection_the_tokens_are_the_query(token_mixer: str) -> None:
    bare, place = build(token_mixer, q_proj=False)
    full, _ = build(token_mixer)
    state = bare.state_dict()
    state["qv.weight"] = torch.cat([torch.eye(16), state["qv.weight"]])
    state["qv.bias"] = torch.cat([torch.zeros(16), state["qv.bias"]])
    full.load_state_dict(state)
    x = tokens_for(place)
    torch.testing.assert_close(bare(x, place.grid), full(x, place.grid))


def reusing(reattention: dict[str, Any], depth: int = 4, blocks: int = 2) -> Any:
    stage = {"token_mixer": "mhsa", "depth": depth, "embed_dim": 16, "num_heads": 4}
    tree = {"img_size": 8, "stem": {"stride": 2}, "num_classes": 5, "stages": [stage]}
    tree |= {"reattention_blocks": blocks, "reattention": reattention}
    torch.manual_seed(0)
    return build_model(validate(ModelConfig, tree)).eval()


def test_the_last_blocks_use_the_map_of_the_block_before_them() -> None:
    """DeepViT, Eq. 5: Norm(Theta^T A_unique) V, with Theta at its start the identity."""
    model = reusing({"norm": "none", "source": "shared"})
    blocks = model.stages[0].blocks
    assert [isinstance(block.mixer, SharedMapAttention) for block in blocks] == [False] * 2 + [
        True,
        True,
    ]
    seen: list[Tensor] = []
    for block in blocks[1:]:
        block.mixer.attn_drop.register_forward_hook(lambda *call: seen.append(call[2]))
    model(torch.randn(2, 3, 8, 8))
    assert len(seen) == 3
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])


def test_a_shared_map_is_mixed_and_applied_to_the_blocks_own_values() -> None:
    model = reusing({"norm": "batch", "source": "shared"})
    mixer = model.stages[0].blocks[3].mixer
    inputs: list[Any] = []
    mixer.register_forward_hook(lambda _, given, out: inputs.append((given[0], given[3], out)))
    model(torch.randn(2, 3, 8, 8))
    x, taps, out = inputs[0]
    value = mixer.v(x).reshape(2, 16, 4, 4).transpose(1, 2)
    mixed = mixer.reattention(taps[-1].attention) @ value
    torch.testing.assert_close(out, mixer.proj(mixed.transpose(1, 2).flatten(2)))


def test_gradient_reaches_the_block_that_gives_its_map() -> None:
    model = reusing({"source": "shared"}, depth=2, blocks=1).train()
    model(torch.randn(4, 3, 8, 8)).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.stages[0].parameters())


@pytest.mark.parametrize("token_mixer", ATTENTION)
def test_heads_may_be_wider_together_than_the_stage(token_mixer: str) -> None:
    """Ten heads of 64 on 16 channels."""
    mixer, place = build(token_mixer, attn_dim=640, num_heads=None, head_dim=64)
    assert (mixer.num_heads, mixer.head_dim, mixer.proj.weight.shape) == (10, 64, (16, 640))
    (attention,) = maps_of(mixer, place)
    assert attention.shape == (3, 10, 24, 24)
    for name in ("num_heads", "head_dim"):
        other, _ = build(token_mixer, **{"attn_dim": 640, "num_heads": None, name: 10})
        assert other.num_heads == {"num_heads": 10, "head_dim": 64}[name]


def test_the_width_of_the_stage_is_no_other_width() -> None:
    plain, same = (place_of("ska", attn_dim=width).config for width in (None, 16))
    assert plain.key == same.key
    wide, whole = (place_of("ska", attn_dim=32, q_proj=q).config for q in (False, True))
    assert wide.key == whole.key != plain.key  # tokens cannot be a query of another width
    assert "16 h4x8" in one_line(wide)
    conv = {"token_mixer": "dwconv", "embed_dim": 16}
    trees = ({"img_size": 8, "stages": [conv | more]} for more in ({}, {"attn_dim": 7}))
    assert len({validate(ModelConfig, {"stem": {"stride": 1}, **tree}).key for tree in trees}) == 1


@pytest.mark.parametrize("act", ["softmax", "relu"])
@pytest.mark.parametrize("token_mixer", ATTENTION)
def test_with_a_masked_diagonal_no_token_attends_to_itself(token_mixer: str, act: str) -> None:
    plain, place = build(token_mixer, attn_act=act)
    mixer, _ = build(token_mixer, attn_act=act, mask_diagonal=True)
    (whole,), (found,) = maps_of(plain, place), maps_of(mixer, place)
    others = whole * (1 - torch.eye(24))
    share = others.sum(-1, keepdim=True) if act == "softmax" else 1.0
    torch.testing.assert_close(found, others / share)


def test_a_group_of_one_token_attends_to_itself_even_so() -> None:
    mixer, place = build("mhsa", mask_diagonal=True, groups=[24])
    plain, _ = build("mhsa", groups=[24])
    x = tokens_for(place)
    torch.testing.assert_close(mixer(x, place.grid), plain(x, place.grid))
