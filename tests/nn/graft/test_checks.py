"""A graft that cannot work: one line that says why, and the network is not touched."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
from timm.layers import DiffAttention
from timm.models.metaformer import LayerNorm2dNoBias, Pooling
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import ParallelThingsBlock, VisionTransformer
from torch import nn

from tests.nn.graft.networks import caformer, cait, cvt, deit, eva, images, lvt, pvt, swin, vit
from vitnas.errors import ConfigError, VitnasError
from vitnas.nn.graft import graft


class Sub(VisionTransformer):
    """Who knows what it does otherwise."""


def sub() -> nn.Module:
    return Sub(img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=3)


def grafted(**fields: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = vit()
        graft(model, **fields)
        return model

    return build


def with_lora() -> nn.Module:
    class Adapted(nn.Linear):
        pass

    model = vit()
    model.blocks[2].attn.qkv = Adapted(24, 72)
    return model


def poolformer() -> nn.Module:
    return caformer(token_mixers=[Pooling, Pooling], norm_layers=LayerNorm2dNoBias)


CASES: list[tuple[Callable[..., nn.Module], dict[str, Any], str]] = [
    # networks
    (
        lambda: timm.create_model("resnet18"),
        {"mixer": "ska"},
        "model = 'ResNet'.*possible classes",
    ),
    (sub, {"mixer": "ska"}, "model = 'Sub'"),
    (lambda: nn.DataParallel(vit()), {"mixer": "ska"}, "model = 'DataParallel'"),
    # fields
    (vit, {"mixer": "sca"}, "mixer = 'sca'.*nearest: ska"),
    (vit, {"mixr": "ska"}, r"mixr = 'ska': unknown key \(nearest: mixer\)"),
    (vit, {"blocks": "1"}, "blocks = '1'.*no mixer is given"),
    (vit, {"mixer": "ska", "blocks": "2-4"}, "blocks = '2-4': there is no block.*nearest: 0-3"),
    (vit, {"mixer": "ska", "blocks": "last:5"}, r"has 4 blocks \(nearest: last:4\)"),
    (swin, {"mixer": "ska", "blocks": "stages:2"}, "no stage '2'.*nearest: stages:0-1"),
    (vit, {"broad": {"gamma": -1.0}}, "broad.gamma = -1.0"),
    (vit, {"mixer": "ska", "key_kernel": 5}, "key_kernel: .*ska does not read it"),
    (vit, {"mixer": "cska", "key_kernel": 4}, r"key_kernel = 4: must be odd \(nearest: 5\)"),
    (vit, {"mask_diagonal": True}, "mask_diagonal: .*no mixer is given"),
    (vit, {"mixer": "ska", "temperature": {"kind": "linear"}}, "kind = 'linear'.*learnable"),
    (swin, {"mixer": "ska", "num_heads": 2}, "num_heads = 2: Swin's table"),
    (swin, {"mixer": "ska", "attn_act": "star_relu"}, "star_relu'.*mask.*nearest: relu"),
    (swin, {"mixer": "ska", "windows": 2}, "windows = 2: Swin has its own windows"),
    (vit, {"mixer": "ska", "windows": 2}, "windows = 2: a class token is in no window"),
    (cait, {"mixer": "ska", "windows": 3}, "windows = 3: must divide both sides of the 4x4 grid"),
    (vit, {"windows": 2}, "windows: .*no mixer is given"),
    # sizes and places
    (deit, {"mixer": "cska"}, r"one token before the grid, and here are 2 \(nearest: ska\)"),
    (lambda: vit(reg_tokens=3), {"mixer": "cska"}, "here are 4"),
    (lambda: vit(dynamic_img_size=True), {"mixer": "ska"}, "dynamic_img_size"),
    (lambda: swin(dynamic_img_size=True), {"broad": {"gamma": 1.0}}, "one image size.*dynamic"),
    (lambda: swin(img_size=18), {"broad": {"gamma": 1.0}}, "9x9 and 5x5 tokens"),
    (lambda: vit(patch_drop_rate=0.5), {"mixer": "ska"}, "patch_drop removes tokens"),
    # attentions
    (lambda: vit(qk_norm=True), {"mixer": "ska"}, "blocks.0.attn: has a LayerNorm .q_norm."),
    (lambda: vit(qk_norm=True), {"broad": {"gamma": 1.0}}, "q_norm"),
    (lambda: vit(scale_attn_norm=True), {"mixer": "ska"}, r"LayerNorm \(norm\)"),
    (lambda: vit(attn_layer=DiffAttention), {"mixer": "ska"}, "'DiffAttention'.*is Attention"),
    (lambda: vit(attn_layer="diff"), {"reattention_blocks": 1}, "only 0 blocks"),
    (lambda: vit(block_fn=ParallelThingsBlock), {"mixer": "ska"}, "= 'ParallelThingsBlock'"),
    (with_lora, {"mixer": "ska"}, "blocks.2.attn: its projections are Adapted"),
    (with_lora, {"broad": {"gamma": 1.0}}, "blocks.2.attn: its projections are Adapted"),
    (
        lambda: eva(use_rot_pos_emb=True, dynamic_img_size=True),
        {"mixer": "ska"},
        "'Eva': ska has no rotary positions",
    ),
    (lambda: eva(attn_type="rope"), {"mixer": "ska"}, "'AttentionRope'.*is EvaAttention"),
    (lambda: eva(qkv_fused=False), {"mixer": "ska"}, "its projections are NoneType and Linear"),
    (lambda: eva(patch_drop_rate=0.5), {"mixer": "ska"}, "patch_drop removes tokens"),
    (poolformer, {"mixer": "ska"}, "'MetaFormer': no block of this network has attention"),
    (caformer, {"mixer": "ska", "blocks": "stages:0"}, "= 'stages:0': no block there has att"),
    (lambda: pvt(sr_ratios=(8, 1)), {"mixer": "ska"}, "blocks.0.attn: reduces 4x4 tokens 8 times"),
    (pvt, {"mixer": "cska", "windows": 2}, "windows = 2: the values are fewer"),
    (lvt, {"mixer": "ska", "windows": 2}, "windows = 2: the values are fewer"),
    (lvt, {"mixer": "ska", "num_heads": 1}, "num_heads = 1: the convolution of LVT's queries"),
    (lvt, {"mixer": "ska", "blocks": "stages:0"}, "= 'stages:0': no block there has att"),
    # re-attention
    (vit, {"reattention_blocks": 5}, r"reattention_blocks = 5: only 4 .*nearest: 4"),
    (vit, {"mixer": "ska", "blocks": "last:2", "reattention_blocks": 3}, "only 2 blocks"),
    (vit, {"reattention_blocks": 1, "reattention": {"source": "shared"}}, "source = 'shared'"),
    (cait, {"reattention_blocks": 1}, "VisionTransformerDistilled, .* and this is a Cait"),
    (swin, {"reattention_blocks": 1}, "this is a SwinTransformer"),
    # broad attention
    (cait, {"broad": {"gamma": 0.4}}, "broad.gamma = 0.4.*this is a Cait"),
    (cvt, {"broad": {"gamma": 0.4}}, "this is a CvT"),
    (eva, {"broad": {"gamma": 0.4}}, "this is a Eva"),
    (pvt, {"broad": {"gamma": 0.4}}, "this is a PyramidVisionTransformerV2"),
    (
        vit,
        {"mixer": "ska", "num_heads": 5, "broad": {"gamma": 0.4}},
        "the 5 heads of the last source do not divide the last width 24",
    ),
    (lambda: lvt(img_size=18), {"broad": {"gamma": 0.4}}, "5x5 and 3x3 tokens to one grid"),
    (vit, {"mixer": "cska", "broad": {"gamma": 0.4}}, "needs.* a key, and cska has none"),
    # after another graft
    (grafted(mixer="ska", blocks="1"), {"mixer": "cska"}, "blocks.1.attn = 'ska': is a graft"),
    (grafted(reattention_blocks=1), {"mixer": "ska"}, "blocks.3.attn: has re-attention"),
    (grafted(reattention_blocks=3), {"reattention_blocks": 2}, "only 1 blocks"),
    (grafted(broad={"gamma": 0.4}), {"mixer": "ska"}, "no graft can follow"),
    (grafted(broad={"gamma": 0.4}), {"broad": {"gamma": 0.4}}, "no graft can follow"),
]


@pytest.mark.parametrize(
    ("build", "fields", "said"),
    CASES,
    ids=lambda part: getattr(part, "__qualname__", str(part))[:60],
)
def test_refuses_in_one_line_and_touches_nothing(
    build: Callable[..., nn.Module], fields: dict[str, Any], said: str
) -> None:
    model = build()
    parts = {name: id(part) for name, part in model.named_modules()}
    state = copy.deepcopy(model.state_dict())
    with pytest.raises(ConfigError, match=said) as caught:
        graft(model, **fields)
    assert "\n" not in str(caught.value)
    assert parts == {name: id(part) for name, part in model.named_modules()}
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_all_or_nothing() -> None:
    """The last part of this graft is impossible, so the first one is not made."""
    model = vit()
    with pytest.raises(ConfigError, match="only 3 blocks"):
        graft(model, mixer="ska", blocks="0", reattention_blocks=4, broad={"gamma": 0.4})
    assert torch.equal(model(images()), vit()(images()))


def test_what_is_not_grafted_on_need_not_be_known() -> None:
    """An unknown attention in another block does not hinder."""
    model = with_lora()
    assert graft(model, mixer="ska", blocks="0-1").replaced == ("blocks.0.attn", "blocks.1.attn")


def test_any_image_is_fine_for_keys_in_windows() -> None:
    model = swin(dynamic_img_size=True)
    assert isinstance(model, SwinTransformer)
    graft(model, mixer="cska")
    assert model(torch.zeros(1, 3, 24, 32)).shape == (1, 5)


def test_broad_attention_refuses_checkpointed_gradients() -> None:
    model = vit().train()
    graft(model, broad={"gamma": 0.4})
    model.set_grad_checkpointing(True)
    with pytest.raises(VitnasError, match="gradient checkpointing"):
        model(images()).sum().backward()
