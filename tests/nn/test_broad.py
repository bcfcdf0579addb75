"""Broad attention against the formulas written out."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.cost.counter import measure_cost
from vitnas.nn import HybridTransformer, build_model
from vitnas.nn.broad import BroadAttention, LayerShape, resize_channels
from vitnas.nn.mixers import Tap

HERE = LayerShape(grid=(2, 3), num_heads=2, dim=8)
FLAGS = list(product(["official", "layers"], [True, False], [True, False]))


def random_taps(layers: int, heads: int = 2, tokens: int = 6, dim: int = 4) -> list[Tap]:
    generator = torch.Generator().manual_seed(0)
    return [
        Tap(*torch.randn(3, 2, heads, tokens, dim, generator=generator).unbind(0))
        for _ in range(layers)
    ]


def pool_last(taps: list[Tap], pool: str, scale: float, with_v: bool, with_qk: bool) -> Tensor:
    """Eq. 5 to 7 as the official code does them: attend to all L values, then pool the output."""
    logit_taps, value_taps = taps if with_qk else taps[-1:], taps if with_v else taps[-1:]
    logits = sum(tap.query @ tap.key.mT for tap in logit_taps)
    value = torch.cat([tap.value for tap in value_taps], dim=-1)  # (B, h, N, L * d)
    out = (scale * logits).softmax(-1) @ value
    batch, heads, tokens, width = out.shape
    layers = len(value_taps)
    if pool == "layers":
        out = out.reshape(batch, heads, tokens, layers, width // layers).mean(dim=3)
        return out.transpose(1, 2).flatten(2)
    flat = out.transpose(1, 2).flatten(2)  # channels lie as (head, layer, dim)
    return F.adaptive_avg_pool1d(flat, heads * width // layers)


@pytest.mark.parametrize(("pool", "with_v", "with_qk"), FLAGS)
def test_pooling_first_is_pooling_last(pool: str, with_v: bool, with_qk: bool) -> None:
    taps, z = random_taps(3), torch.randn(2, 6, 8)
    broad = BroadAttention(0.4, HERE, [HERE] * 3, pool=pool, with_v=with_v, with_qk=with_qk)
    expected = z + 0.4 * pool_last(taps, pool, 4**-0.5, with_v, with_qk)
    torch.testing.assert_close(broad(z, taps), expected)


def test_official_pooling_does_not_average_over_layers() -> None:
    values = [tap.value for tap in random_taps(3)]
    official = BroadAttention(1.0, HERE, [HERE] * 3).pool_values(values)
    layers = BroadAttention(1.0, HERE, [HERE] * 3, pool="layers").pool_values(values)
    torch.testing.assert_close(layers, sum(values) / 3)
    assert not torch.allclose(official, layers)
    torch.testing.assert_close(official[..., 0], values[0][..., :3].mean(-1))


def test_scale_of_equation_6_is_the_width() -> None:
    taps, z = random_taps(2), torch.randn(2, 6, 8)
    broad = BroadAttention(1.0, HERE, [HERE] * 2, scale="embed_dim")
    expected = z + pool_last(taps, "official", 8**-0.5, True, True)
    torch.testing.assert_close(broad(z, taps), expected)


@pytest.mark.parametrize("channels", [1, 3, 8, 12, 18, 24])
@pytest.mark.parametrize("width", [1, 4, 8, 12, 18])
def test_resize_channels_is_adaptive_average_pooling(channels: int, width: int) -> None:
    x = torch.randn(2, 5, channels)
    torch.testing.assert_close(resize_channels(x, channels, width), F.adaptive_avg_pool1d(x, width))


def network(mixers: list[str], gamma: float = 0.7, **fields: Any) -> HybridTransformer:
    widths, heads = (8, 12, 16), (2, 3, 4)
    stages = [
        {"token_mixer": mixer, "depth": 2, "embed_dim": width}
        | ({"num_heads": h} if mixer in ("mhsa", "ska", "cska") else {})
        for mixer, width, h in zip(mixers, widths, heads, strict=False)
    ]
    tree = {"img_size": (16, 32), "stem": {"stride": 2}, "stages": stages, "num_classes": 10}
    tree |= {"broad": {"gamma": gamma}, **fields}
    torch.manual_seed(0)
    return build_model(validate(ModelConfig, tree)).eval()


def collect(model: HybridTransformer, images: Tensor) -> tuple[Tensor, list[Tap]]:
    """The last layer's output, and what the blocks hand out."""
    x, taps = model.stem(images) + model.pos_embed, list[Tap]()
    for stage in model.stages:
        x = stage(x, taps)
    return x, taps


def to_last_grid(x: Tensor, grid: tuple[int, int], model: HybridTransformer) -> Tensor:
    """(B, h_i, N_i, d_i) -> (B, h, N, d): merge heads, max-pool, average channels, split."""
    config = model.config
    picture = x.transpose(1, 2).flatten(2).mT.unflatten(2, grid)
    tokens = F.adaptive_max_pool2d(picture, config.grids[-1]).flatten(2).mT
    channels = F.adaptive_avg_pool1d(tokens, config.stages[-1].embed_dim)
    heads = config.stages[config.broad_sources[-1][0]].heads
    return channels.unflatten(2, (heads, -1)).transpose(1, 2)


@pytest.mark.parametrize(
    "mixers",
    [
        ["mhsa", "mhsa", "mhsa"],
        ["mhsa", "dwconv", "mhsa"],
        ["dwconv", "ska", "mhsa"],
        ["mhsa", "ska", "cska"],
        ["ska", "mlp"],
        ["pool", "mhsa", "ska"],
    ],
    ids="-".join,
)
def test_a_hierarchy_brings_its_sources_to_the_last_stage(mixers: list[str]) -> None:
    model = network(mixers) if mixers != ["mhsa", "ska", "cska"] else widened(mixers)
    images = torch.randn(2, 3, 16, 32)
    z, taps = collect(model, images)
    sources = model.config.broad_sources
    assert len(taps) == len(sources) == sum(mixer in ("mhsa", "ska") for mixer in mixers)
    fitted = [
        Tap(*(to_last_grid(part, model.config.grids[index], model) for part in tap[:3]))
        for (index, _), tap in zip(sources, taps, strict=True)
    ]
    head_dim = model.config.stages[-1].embed_dim // model.config.stages[sources[-1][0]].heads
    expected = z + 0.7 * pool_last(fitted, "official", head_dim**-0.5, True, True)
    torch.testing.assert_close(model.forward_features(images).flatten(1, -2), expected)


def widened(mixers: list[str]) -> HybridTransformer:
    """The heads of the last source must divide the last width: 3 do not divide 16."""
    stages = [
        {"token_mixer": mixer, "depth": 2, "embed_dim": width, "num_heads": heads}
        for mixer, width, heads in zip(mixers, (8, 12, 18), (2, 3, 6), strict=True)
    ]
    tree = {"img_size": (16, 32), "stem": {"stride": 2}, "stages": stages}
    torch.manual_seed(0)
    return build_model(validate(ModelConfig, {**tree, "broad": {"gamma": 0.7}})).eval()


@pytest.mark.parametrize(
    ("layers", "sources"),
    [
        (None, [1, 3, 5]),
        ("stages", [1, 3, 5]),
        ("all", [0, 1, 2, 3, 4, 5]),
        ("last:3", [3, 4, 5]),
        ("last:99", [0, 1, 2, 3, 4, 5]),
        ("every:3", [2, 5]),
    ],
)
def test_layers_of_a_pyramid(layers: str | None, sources: list[int]) -> None:
    model = network(["mhsa", "ska", "mhsa"], broad={"gamma": 0.7, "layers": layers})
    assert [2 * stage + block for stage, block in model.config.broad_sources] == sources
    images = torch.randn(2, 3, 16, 32)
    z, taps = collect(model, images)
    assert len(taps) == len(sources)
    grids = [model.config.grids[index // 2] for index in sources]
    fitted = [
        Tap(*(to_last_grid(part, grid, model) for part in tap[:3]))
        for grid, tap in zip(grids, taps, strict=True)
    ]
    expected = z + 0.7 * pool_last(fitted, "official", 4**-0.5, True, True)
    torch.testing.assert_close(model.forward_features(images).flatten(1, -2), expected)
    assert closed_form(model.config).flops == measure_cost(model.config).flops


@pytest.mark.parametrize(("layers", "given"), [("last:1", (False, True)), (None, (True, True))])
def test_layers_of_one_stage(layers: str | None, given: tuple[bool, bool]) -> None:
    assert network(["mhsa"], broad={"gamma": 0.7, "layers": layers}).stages[0].tapped == given


def test_a_class_token_is_not_pooled_with_the_grid() -> None:
    fine = LayerShape(grid=(4, 6), num_heads=2, dim=8)
    taps, z = random_taps(2, tokens=25), torch.randn(2, 7, 8)

    def pooled(x: Tensor) -> Tensor:
        """Each head's 24 patch tokens are pooled to 6."""
        pictures = x[:, :, 1:].mT.reshape(2, 8, 4, 6)
        patches = F.max_pool2d(pictures, 2).reshape(2, 2, 4, 6).mT
        return torch.cat([x[:, :, :1], patches], dim=2)

    by_hand = [Tap(pooled(tap.query), pooled(tap.key), pooled(tap.value)) for tap in taps]
    expected = BroadAttention(0.4, HERE, [HERE] * 2, prefix=1)(z, by_hand)
    found = BroadAttention(0.4, HERE, [fine] * 2, prefix=1)(z, taps)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("class_token", [False, True])
def test_one_stage_collects_every_layer_also_with_a_class_token(class_token: bool) -> None:
    model = network(["mhsa"], class_token=class_token)
    images = torch.randn(2, 3, 16, 32)
    x, taps = model.stem(images), list[Tap]()
    if class_token:
        x = torch.cat([model.class_token.expand(2, 1, -1), x], dim=1)
    z = model.stages[0](x + model.pos_embed, taps)
    assert len(taps) == 2
    expected = model.norm(z + 0.7 * pool_last(taps, "official", 4**-0.5, True, True))
    torch.testing.assert_close(model.forward_features(images), expected)


def test_groups_hand_out_tokens_in_their_true_order() -> None:
    """With the weights that mix tokens set to nothing, groups cannot change the network, and so
    must not change what is collected."""
    results = []
    for groups in ([1, 1], [8, 4]):
        model = network(["mhsa"])
        tree = model.config.to_tree() | {"broad": {"gamma": 1.0}}
        tree["stages"][0]["groups"] = groups
        torch.manual_seed(0)
        model = build_model(validate(ModelConfig, tree)).eval()
        for block in model.stages[0].blocks:
            torch.nn.init.zeros_(block.block.mixer.proj.weight)
        generator = torch.Generator().manual_seed(0)
        results.append(model(torch.randn(2, 3, 16, 32, generator=generator)))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("mixers", [["mhsa"], ["dwconv", "mhsa"]], ids="-".join)
def test_gamma_0_is_no_broad_attention_at_all(mixers: list[str]) -> None:
    off, on, absent = network(mixers, 0.0), network(mixers, 1.0), network(mixers, 0.0, broad={})
    images = torch.randn(2, 3, 16, 32)
    assert off.broad is None
    assert torch.equal(off(images), absent(images))
    assert not torch.allclose(off(images), on(images))
    assert set(off.state_dict()) == set(on.state_dict()) == set(absent.state_dict())
    off_cost, absent_cost = measure_cost(off.config), measure_cost(absent.config)
    assert off_cost == absent_cost
    assert measure_cost(on.config).flops > off_cost.flops
    assert measure_cost(on.config).num_params == off_cost.num_params


def test_small_gamma_changes_the_features_in_proportion() -> None:
    images = torch.randn(2, 3, 16, 32)
    zero, half, one = (network(["mhsa"], gamma).forward_features(images) for gamma in (0, 0.5, 1))
    torch.testing.assert_close(half - zero, (one - zero) / 2)


def test_gradient_reaches_every_layer_through_broad_attention_alone() -> None:
    """BViT's reason for it: with the deep feature cut off, early layers still learn."""
    model = network(["mhsa"])
    z, taps = collect(model, torch.randn(2, 3, 16, 32))
    model.broad(z.detach(), taps).square().sum().backward()
    for block in model.stages[0].blocks:
        assert block.mixer.qkv.weight.grad.abs().sum() > 0
