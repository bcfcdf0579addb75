"""What a static-key graft takes over, and what it does not take."""

from __future__ import annotations

import pytest
import torch

from tests.nn.graft.networks import images, swin, vit
from vitnas.errors import VitnasError
from vitnas.nn.graft import graft


def test_what_is_frozen_stays_frozen_and_the_key_learns() -> None:
    model = vit().requires_grad_(False)
    graft(model, mixer="ska", blocks="2")
    learned = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert learned == ["blocks.2.attn.mixer.static_key"]


def test_type_mode_and_dropout_are_the_attentions() -> None:
    model = vit(attn_drop_rate=0.25, proj_drop_rate=0.5).double().train()
    drops = model.blocks[1].attn.attn_drop, model.blocks[1].attn.proj_drop
    graft(model, mixer="cska")
    mixer = model.blocks[1].attn.mixer
    assert (mixer.attn_drop, mixer.proj_drop) == drops
    assert mixer.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}


@pytest.mark.parametrize("bias", [True, False])
def test_without_biases_too(bias: bool) -> None:
    model = vit(qkv_bias=bias, proj_bias=bias)
    graft(model, mixer="ska")
    assert (model.blocks[0].attn.mixer.qv.bias is not None) == bias
    assert (model.blocks[0].attn.mixer.proj.bias is not None) == bias
    assert model(images()).isfinite().all()


def test_fields_reach_the_mixer() -> None:
    model = vit()
    graft(model, mixer="ska", qk_scale=False, key_init="randn")
    mixer = model.blocks[0].attn.mixer
    assert mixer.scale == 1.0
    assert mixer.static_key.std() > 0.5


@pytest.mark.parametrize("heads", [2, 5])
def test_heads_that_both_have_are_kept(heads: int) -> None:
    """Of 3 heads of 8 channels: the first two, or all and two new ones."""
    model, before, kept = vit(), vit().blocks[0].attn, 8 * min(heads, 3)
    graft(model.requires_grad_(False), mixer="ska", num_heads=heads)
    mixer = model.blocks[0].attn.mixer
    assert mixer.static_key.shape == (heads, 17, 8)
    query, _, value = before.qkv.weight.chunk(3)
    for new, old in zip(mixer.qv.weight.chunk(2), (query, value), strict=True):
        assert torch.equal(new[:kept], old[:kept])
    assert torch.equal(mixer.proj.weight[:, :kept], before.proj.weight[:, :kept])
    assert torch.equal(mixer.proj.bias, before.proj.bias)
    assert mixer.proj.weight.requires_grad == mixer.qv.weight.requires_grad == (heads > 3)


def test_heads_wider_than_the_block_are_kept() -> None:
    model = swin(head_dim=12)
    before = model.get_submodule("layers.0.blocks.1.attn")
    graft(model, mixer="cska")
    mixer = model.get_submodule("layers.0.blocks.1.attn").mixer
    assert (mixer.width, mixer.proj) == (24, before.proj)
    assert model(images()).isfinite().all()


def test_initial_keys_follow_the_seed() -> None:
    keys = []
    for seed in (0, 0, 1):
        model = vit()
        torch.manual_seed(seed)
        graft(model, mixer="ska")
        keys.append(model.blocks[0].attn.mixer.static_key)
    assert torch.equal(keys[0], keys[1])
    assert not torch.equal(keys[0], keys[2])


def test_another_size_is_refused_with_both_numbers() -> None:
    model = vit()
    graft(model, mixer="ska")
    model.set_input_size((24, 24))
    with pytest.raises(ValueError, match=r"for 17 tokens \(4x4\), but its input has 37"):
        model(torch.zeros(1, 3, 24, 24))


def test_an_attention_mask_is_refused() -> None:
    model = vit()
    graft(model, mixer="ska")
    attn, x = model.blocks[0].attn, torch.zeros(1, 17, 24)
    for given in ({"attn_mask": torch.zeros(17, 17)}, {"is_causal": True}):
        with pytest.raises(VitnasError, match="accepts no attention mask"):
            attn(x, **given)


def test_works_with_checkpointed_gradients() -> None:
    model, plain = vit().train(), vit().train()
    torch.manual_seed(0)
    graft(model, mixer="cska")
    torch.manual_seed(0)
    graft(plain, mixer="cska")
    model.set_grad_checkpointing(True)
    for network in (model, plain):
        network(images()).square().sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, plain.get_parameter(name).grad)
