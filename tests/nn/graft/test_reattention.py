"""Re-attention in timm's attention."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.nn.graft.networks import caformer, deit, eva, images, pvt, vit
from vitnas.nn.graft import graft
from vitnas.nn.graft.reattention import ReattentionDropout


@pytest.mark.parametrize("build", [vit, deit, eva, pvt, caformer])
def test_identity_theta_without_norm_is_the_network_itself(build: type) -> None:
    model, x = build().double(), images().double()
    graft(model, reattention_blocks=2, reattention={"norm": "none"})
    torch.testing.assert_close(model(x), build().double()(x), rtol=1e-10, atol=1e-12)


def test_only_the_last_k_are_mixed_and_every_weight_keeps_its_name() -> None:
    model, before = vit(), vit().state_dict()
    done = graft(model, reattention_blocks=2)
    assert done.reattention == ("blocks.2.attn", "blocks.3.attn")
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert {name.rpartition("reattention")[0] for name in after.keys() - before.keys()} == {
        "blocks.2.attn.attn_drop.",
        "blocks.3.attn.attn_drop.",
    }


@pytest.mark.parametrize(("given", "eps"), [({}, 1e-5), ({"norm_eps": 1e-4}, 1e-4)])
def test_layer_norm_has_its_own_epsilon(given: dict[str, float], eps: float) -> None:
    """vit-pytorch's (the code of 001) where nothing is said; it was 1e-6, and no field said so."""
    model = vit()
    graft(model, reattention_blocks=1, reattention={"norm": "layer", "bias": False, **given})
    drop = model.blocks[3].attn.attn_drop
    flat = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0)) / 1000
    wanted = torch.nn.functional.layer_norm(flat.permute(0, 2, 3, 1), (3,), eps=eps)
    torch.testing.assert_close(drop(flat), wanted.permute(0, 3, 1, 2))


def test_heads_are_mixed() -> None:
    """Theta that swaps two heads swaps the maps that the values are mixed with."""
    model, seen = vit(), []
    graft(model, reattention_blocks=1, reattention={"norm": "none"})
    drop = model.blocks[3].attn.attn_drop
    assert isinstance(drop, ReattentionDropout)
    drop.register_forward_hook(lambda _, args, out: seen.append((args[0], out)))
    with torch.no_grad():
        drop.reattention.theta.weight.copy_(torch.eye(3)[[1, 0, 2]][..., None, None])
    model(images())
    before, after = seen[0]
    torch.testing.assert_close(after, before[:, [1, 0, 2]])


def test_dropout_on_the_map_stays_and_comes_first() -> None:
    model = vit(attn_drop_rate=0.5).train()
    graft(model, reattention_blocks=1, reattention={"norm": "none"})
    drop = model.blocks[3].attn.attn_drop
    assert drop.p == 0.5
    assert drop.training
    seen: list[Tensor] = []
    drop.reattention.register_forward_hook(lambda _, args, __: seen.append(args[0]))
    model(images())
    assert 0.3 < (seen[0] == 0).float().mean() < 0.7
