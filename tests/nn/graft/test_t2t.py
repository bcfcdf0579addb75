"""T2T-ViT has the printed sizes, and its Performer is attention over random features."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import layer_norm

from tests.nn.graft.networks import images, t2t
from vitnas.cost.operators import count_flops
from vitnas.errors import ConfigError
from vitnas.nn.graft.apply import graft
from vitnas.nn.graft.networks import build_network
from vitnas.nn.graft.t2t import Performer, TokensToToken, sinusoids, soft_splits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "params", "flops"), [("t2t_vit_7", 4.256, 1.156), ("t2t_vit_14", 21.466, 4.800)]
)
def test_sizes(name: str, params: float, flops: float) -> None:
    """T2T-ViT prints 4.3 M and 1.1 G, 21.5 M and 4.8 G; BViT 4.2 M and 0.9 G, 21.4 M and 4.8 G."""
    model = build_network(name)
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    assert trained / 1e6 == pytest.approx(params, abs=1e-3)
    assert count_flops(model, (3, 224, 224)) / 1e9 == pytest.approx(flops, abs=1e-3)


@pytest.mark.slow
def test_bvits_flops_are_those_without_the_performers() -> None:
    """BViT prints 0.9 G for T2T-ViT-7."""
    model = build_network("t2t_vit_7")
    pieces = ((3136, 147), (784, 576))
    performers = sum(
        count_flops(one, pieces_of)
        for one, pieces_of in zip(model.patch_embed.performers, pieces, strict=True)
    )
    assert (count_flops(model, (3, 224, 224)) - performers) / 1e9 == pytest.approx(0.9, abs=0.01)


def test_a_performer_is_attention_over_its_features() -> None:
    """The map is written out here, with N x N entries."""
    torch.manual_seed(0)
    performer, x = Performer(12, 8).eval(), torch.randn(2, 9, 12)
    query, key, value = performer.qkv(layer_norm(x, (12,))).chunk(3, dim=-1)
    phi = [
        (one @ performer.features.T - one.square().sum(-1, keepdim=True) / 2).exp()
        for one in (query, key)
    ]
    attention = phi[0] @ phi[1].transpose(1, 2)
    attention = attention / attention.sum(dim=-1, keepdim=True)
    y = value + performer.proj(attention @ value)
    torch.testing.assert_close(performer(x), y + performer.mlp(layer_norm(y, (8,))))


def test_the_features_are_orthogonal_and_fixed() -> None:
    performer = Performer(12, 8)
    torch.testing.assert_close(performer.features @ performer.features.T, 4 * torch.eye(4))
    assert "features" in performer.state_dict()
    assert "features" not in dict(performer.named_parameters())


@pytest.mark.parametrize(("patch_size", "grid"), [(4, (8, 12)), (8, (4, 6)), (16, (2, 3))])
def test_patches_of_three_sizes(patch_size: int, grid: tuple[int, int]) -> None:
    embed = TokensToToken((32, 48), patch_size, 2, 6)
    assert embed.grid_size == grid
    assert embed(torch.randn(1, 2, 32, 48)).shape == (1, grid[0] * grid[1], 6)
    embed.set_input_size((64, 96))
    assert embed(torch.randn(1, 2, 64, 96)).shape == (1, 4 * grid[0] * grid[1], 6)


def test_its_levels_are_pictures_as_a_vit_s() -> None:
    model = t2t().eval()
    height, width = model.patch_embed.grid_size
    final, levels = model.forward_intermediates(images())
    assert final.shape[1] == height * width + 1
    assert {tuple(level.shape[2:]) for level in levels} == {(height, width)}


def test_a_soft_split_sees_a_piece() -> None:
    first = soft_splits(16)[0]
    picture = torch.arange(2 * 15 * 15.0).view(1, 2, 15, 15)
    pieces = first(picture)
    assert pieces.shape == (1, math.prod(first.grid((15, 15))), 2 * 49)
    across = first.grid((15, 15))[1]
    torch.testing.assert_close(pieces[0, across + 1], picture[0, :, 2:9, 2:9].flatten())


def test_positions_are_fixed_sinusoids() -> None:
    model = build_network("t2t_vit_7", img_size=32)
    torch.testing.assert_close(model.pos_embed, sinusoids(5, 256))
    assert not model.pos_embed.requires_grad
    assert sinusoids(3, 4)[0, 2].tolist() == pytest.approx(
        [math.sin(2), math.cos(2), math.sin(2 / 100), math.cos(2 / 100)]
    )


def test_broad_attention_is_that_of_a_vit() -> None:
    """BViT, Section IV-E: exactly identical to BViT."""
    model = t2t()
    before = model(images())
    params = sum(one.numel() for one in model.parameters())
    done = graft(model, broad={"gamma": 0.4})
    assert done.broad
    assert not torch.allclose(model(images()), before)
    assert sum(one.numel() for one in model.parameters()) == params


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (
            {"patch_size": 5},
            "t2t_vit_7 cannot be built with patch_size 5: patch_size is 4, 8 or 16",
        ),
        ({"dynamic_img_pad": True}, "T2T-ViT pads no image"),
        ({"dynamic_img_size": True}, "unexpected keyword argument 'strict_img_size'"),
        ({"embed_norm_layer": "layernorm"}, "unexpected keyword argument 'norm_layer'"),
    ],
)
def test_what_it_does_not_take(options: dict[str, object], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        build_network("t2t_vit_7", **options)
