"""Token mixers for a finer grid: keys and weights over positions are pictures, and stay so."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.nn.layers.convolved import Convolutions
from vitnas.nn.layers.resizing import TokenLayout, resize_tokens
from vitnas.nn.mixers import Place, TokenMixer, build_mixer
from vitnas.nn.resize import apply_changes, config_at, plan_resize


def resized(mixer: TokenMixer, place: Any, factor: int) -> TokenMixer:
    """`mixer`, in place, for a grid `factor` times as fine."""
    height, width = place.config.image_hw
    new = config_at(place.config, (factor * height, factor * width))
    stage = nn.Module()
    stage.grid, stage.mixer = place.grid, mixer
    apply_changes(plan_resize([stage], place.config, new))  # type: ignore[list-item]
    assert stage.grid == new.grids[0]
    return mixer


def waves(layout: TokenLayout, channels: int, seed: int = 0) -> Tensor:
    """One image's tokens, smooth over the picture whatever the grid, `(1, N, C)`."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(1, channels, 3, 3, generator=generator)
    picture = F.interpolate(coarse, layout.grid, mode="bicubic", align_corners=False)
    first = torch.randn(1, layout.prefix, channels, generator=generator)
    return torch.cat([first, picture.flatten(2).transpose(1, 2)], dim=1)


def smooth_keys(mixer: TokenMixer, layout: TokenLayout) -> None:
    """Weights over positions that are pictures one can interpolate, as trained ones are."""
    with torch.no_grad():
        for name, axis in {
            "static_key": 1,
            "class_key": 1,
            "fc1.weight": 1,
            "fc2.weight": 0,
            "fc2.bias": 0,
        }.items():
            parameters = dict(mixer.named_parameters())
            if name in parameters:
                value = parameters[name].movedim(axis, 0)
                flat = waves(layout, value[0].numel())[0]
                value.copy_(flat.reshape(value.shape) * (0.05 if "fc1" in name else 1.0))
        if "key.weight" in parameters:
            by_head = torch.unflatten(mixer.key.weight, 0, (mixer.num_heads, -1))
            half = by_head.shape[-1] // 2
            middle = by_head[..., half, half]  # (h, N, C / h); the neighbours stay at zero
            flat = waves(layout, middle[:, 0].numel())[0]
            by_head.zero_()
            middle.copy_(flat.reshape(-1, *middle[:, 0].shape).transpose(0, 1))


_FEWER = {"kernel_qkv": 1, "stride_kv": 2}
VARIANTS: dict[str, dict[str, Any]] = {
    "mhsa": {},
    "mhsa, batch": {"reattention_blocks": 1, "reattention": {"norm": "batch"}},
    "mhsa, layer": {"reattention_blocks": 1, "reattention": {"norm": "layer"}},
    "mhsa, none": {"reattention_blocks": 1, "reattention": {"norm": "none"}},
    "ska": {},
    "cska": {},
    "cska, 5x5": {"key_kernel": 5},
    "ska, relu": {"attn_act": "relu"},
    "cska, gelu": {"attn_act": "gelu"},
    "mhsa; fewer keys": _FEWER,
    "ska, fewer keys": _FEWER,
    "cska, fewer keys": _FEWER | {"attn_act": "gelu"},
    "mlp": {},
}


@pytest.mark.parametrize("class_token", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_function_of_the_picture_is_nearly_kept(variant: str, class_token: bool) -> None:
    """Smooth tokens on a grid twice as fine give what the coarse ones gave, at the finer points."""
    place = _place_on(re.split("[,;]", variant)[0], class_token=class_token, **VARIANTS[variant])
    layout = TokenLayout(place.grid, place.config.num_prefix_tokens)
    torch.manual_seed(0)
    mixer = build_mixer(place).eval()
    keys = Convolutions(1, place.stage_config.key_stride, layout.prefix).keys(layout)
    smooth_keys(mixer, keys)
    if variant.startswith("mhsa,"):
        _train_reattention(mixer, layout)
    finer = TokenLayout((24, 24), layout.prefix)
    with torch.no_grad():
        before = mixer(waves(layout, 16, 5), layout.grid)
        resized(mixer, place, 2)
        after = mixer(waves(finer, 16, 5), finer.grid)
    expected = resize_tokens(before, 1, layout, finer)
    assert (after - expected).norm() < 0.1 * expected.norm()  # not rescaled: more than 1


@pytest.mark.parametrize("fields", [{}, {"attn_act": "gelu"}], ids=str)
@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_a_window_is_resized_like_a_picture_of_its_own(mixer: str, fields: dict[str, Any]) -> None:
    """The second of four windows of 6x6 tokens, which become windows of 12x12."""
    place, place_alone = (
        _place_on(mixer, windows=windows, img_size=side, **fields)
        for windows, side in ((2, 12), (1, 6))
    )
    torch.manual_seed(0)
    whole, alone = (build_mixer(one).eval() for one in (place, place_alone))
    state = whole.state_dict()
    for name in ("static_key", "key.weight", "key.bias"):
        if name in state:
            state[name] = state[name].chunk(4, dim=int(name == "static_key"))[1]
    alone.load_state_dict(state)
    resized(whole, place, 2)
    resized(alone, place_alone, 2)
    x = waves(TokenLayout((24, 24), 0), 16, 5)
    out, window = (
        t.unflatten(1, (24, 24))[:, :12, 12:].flatten(1, 2) for t in (whole(x, (24, 24)), x)
    )
    torch.testing.assert_close(out, alone(window, (12, 12)))


def _place_on(mixer: str, **fields: Any) -> Any:
    stage: dict[str, Any] = {"token_mixer": mixer, "embed_dim": 16}
    if mixer != "mlp":
        stage["num_heads"] = 4
    of_stage = ("key_kernel", "attn_act", "windows", "kernel_qkv", "stride_kv")
    stage |= {name: fields.pop(name) for name in of_stage if name in fields}
    tree = {"img_size": 12, "stem": {"stride": 1}, "stages": [stage], **fields}
    config = validate(ModelConfig, tree)
    return Place(config, 0, reattention=bool(config.reattention_blocks))


def _train_reattention(mixer: Any, layout: TokenLayout) -> None:
    """Heads mixed, statistics of real maps, a norm that has learned."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for linear in (mixer.qkv, mixer.proj):
            linear.weight.mul_(4)
        for parameter in mixer.reattention.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        mixer.train()
        for _ in range(60):
            mixer(waves(layout, 16, 5), layout.grid)
        mixer.eval()
