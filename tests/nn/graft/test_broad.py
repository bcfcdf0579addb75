"""Broad attention on ViT and Swin (BSwin): what it collects, in which order, and what it adds."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.nn.graft.networks import images, lvt, swin, vit
from vitnas.nn.broad import BroadAttention
from vitnas.nn.graft import graft
from vitnas.nn.graft.broad import from_windows


def test_only_the_last_block_gives_something_else() -> None:
    model, before = vit(), vit()
    graft(model, broad={"gamma": 0.4})
    given, expected = _blocks(model), _blocks(before)
    assert all(torch.equal(a, b) for a, b in zip(given[:-1], expected[:-1], strict=True))
    assert not torch.allclose(given[-1], expected[-1])


def test_grows_with_gamma() -> None:
    """z + gamma f: the difference to the plain network is linear in gamma."""
    plain = _blocks(vit())[-1]
    once, thrice = (_blocks(_broad_vit(gamma))[-1] - plain for gamma in (0.2, 0.6))
    torch.testing.assert_close(3 * once, thrice, rtol=1e-4, atol=1e-6)


def test_is_the_one_broad_attention() -> None:
    assert type(_broad_vit(0.4).broad.attention) is BroadAttention


def test_no_parameter_and_no_name_changes() -> None:
    model = swin()
    graft(model, broad={"gamma": 0.4})
    assert list(model.state_dict()) == list(swin().state_dict())


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("side", [8, 10])
def test_windows_come_back_in_the_pictures_order(side: int, shift: int) -> None:
    """Also where the picture is padded to whole windows."""
    block = swin(img_size=2 * side).layers[0].blocks[1 if shift else 0]
    assert block.shift_size == (shift, shift)
    picture = torch.arange(2.0 * side * side * 3).reshape(2, side, side, 3)
    seen: list[Tensor] = []

    def attention(x: Tensor, mask: Tensor | None = None) -> Tensor:
        seen.append(x)
        return x

    block.attn.forward = attention
    block._attn(picture)
    assert torch.equal(from_windows(seen[0], block), picture.flatten(1, 2))


def test_bswin_by_hand() -> None:
    """Eq. 5 to 8 over the last blocks of both stages: tokens max-pooled, channels averaged."""
    model, before = swin(), swin()
    graft(model, broad={"gamma": 0.4, "pool": "layers"})
    parts = []
    for stage, layer in enumerate(before.layers):
        block = layer.blocks[-1]
        inputs: list[torch.Tensor] = []
        block.norm1.register_forward_hook(lambda _, __, out, to=inputs: to.append(out))
        parts.append((stage, block, inputs))
    z = _last(before)
    collected = [_collect(stage, block, inputs[0]) for stage, block, inputs in parts]
    query, key, value = (torch.stack(part) for part in zip(*collected, strict=True))
    logits = (query @ key.transpose(-2, -1)).sum(0) * 8**-0.5
    broad = (logits.softmax(-1) @ value.mean(0)).transpose(1, 2).flatten(2)
    torch.testing.assert_close(_last(model), z + 0.4 * broad.reshape(z.shape))


def _collect(stage: int, block: torch.nn.Module, x: Tensor) -> list[Tensor]:
    """Query, key and value of a block, for the last stage's 16 tokens of 32 channels in 4 heads."""
    found = []
    for part in block.attn.qkv(x).chunk(3, dim=-1):  # (B, H, W, C)
        picture = part.permute(0, 3, 1, 2)
        if stage == 0:
            picture = F.max_pool2d(picture, 2)
        tokens = picture.flatten(2).transpose(1, 2)
        tokens = F.adaptive_avg_pool1d(tokens, 32)
        found.append(tokens.reshape(len(x), 16, 4, 8).transpose(1, 2))
    return found


@pytest.mark.parametrize("grafted", [False, True])
def test_blvt_by_hand(grafted: bool) -> None:
    """Queries of 4x4 tokens are max-pooled; keys and values have the last 2x2 tokens already. They
    are those of an attention's last pass."""
    model, plain, seen = lvt(), lvt(), list[tuple[Tensor, ...]]()
    fields = {"mixer": "ska", "blocks": "stages:1"} if grafted else {}
    for network, more in ((plain, {}), (model, {"broad": {"gamma": 0.4, "pool": "layers"}})):
        torch.manual_seed(0)
        done = graft(network, **fields, **more)
    names = ("stages.1.blocks.1.attn", "stages.2.blocks.1.attn")
    assert done.broad == names
    for name in names:
        inner = plain.get_submodule(name)
        inner = getattr(inner, "mixer", inner)
        inner.parts.register_forward_hook(lambda _, __, out: seen.append(out))
    z = _last_of_lvt(plain)
    first, second = seen[1], seen[3]  # each attention runs twice
    if grafted:
        key = plain.get_submodule(names[0]).mixer.key_of_grid((4, 4))
        first = (first[0], key.expand_as(first[1]), first[1])
    pooled = F.max_pool2d(first[0].transpose(1, 2).unflatten(2, (4, 4)), 2).flatten(2)
    first = tuple(F.adaptive_avg_pool1d(x, 24) for x in (pooled.transpose(1, 2), *first[1:]))
    query, key, value = (
        torch.stack(part).unflatten(3, (3, 8)).transpose(2, 3)
        for part in zip(first, second, strict=True)
    )
    logits = (query @ key.transpose(-2, -1)).sum(0) * 8**-0.5
    broad = (logits.softmax(-1) @ value.mean(0)).transpose(1, 2).flatten(2)
    torch.testing.assert_close(_last_of_lvt(model), z + 0.4 * broad)


def _last_of_lvt(model: torch.nn.Module) -> Tensor:
    """What the last block of an LVT with attention gives."""
    given: list[Tensor] = []
    model.stages[-1].blocks[-1].register_forward_hook(lambda _, __, out: given.append(out))
    model(images())
    return given[-1]


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_what_has_no_key_gives_nothing(mixer: str) -> None:
    model = swin()
    done = graft(model, mixer=mixer, blocks="stages:0", broad={"gamma": 0.4})
    first = ["layers.0.blocks.1.attn"] if mixer == "ska" else []
    assert done.broad == (*first, "layers.1.blocks.1.attn")
    assert model(images()).isfinite().all()


def test_the_last_block_with_a_key_speaks_for_its_stage() -> None:
    done = graft(swin(), mixer="cska", blocks="1", broad={"gamma": 0.4})
    assert done.broad == ("layers.0.blocks.0.attn", "layers.1.blocks.1.attn")


def test_a_pass_that_was_cut_short_leaves_nothing_behind() -> None:
    model = _broad_vit(0.4)
    scores = model(images())
    model.blocks[:2](torch.zeros(2, 17, 24))
    assert torch.equal(model(images()), scores)
    assert model.broad.taps == {}


def test_intermediate_features_have_it_too() -> None:
    model = _broad_vit(0.4)
    last = model.forward_intermediates(images(), indices=1, intermediates_only=True)[0]
    tokens = _blocks(model)[-1]
    assert torch.equal(last.flatten(2).transpose(1, 2), tokens[:, 1:])


def _broad_vit(gamma: float) -> torch.nn.Module:
    model = vit()
    graft(model, broad={"gamma": gamma})
    return model


def _blocks(model: torch.nn.Module) -> list[Tensor]:
    """What each block of a ViT gives."""
    given: list[Tensor] = []
    for block in model.blocks:
        block.register_forward_hook(lambda _, __, out: given.append(out))
    model(images())
    return given


def _last(model: torch.nn.Module) -> Tensor:
    """What the last block of a Swin gives."""
    given: list[Tensor] = []
    model.layers[-1].register_forward_hook(lambda _, __, out: given.append(out))
    model(images())
    return given[-1]


@pytest.mark.parametrize(
    ("layers", "numbers"), [("all", [0, 1, 2, 3]), ("last:1", [3]), ("every:2", [1, 3])]
)
def test_layers_are_chosen_as_in_a_model_file(layers: str, numbers: list[int]) -> None:
    names = [f"layers.{stage}.blocks.{block}.attn" for stage in (0, 1) for block in (0, 1)]
    model = swin()
    done = graft(model, broad={"gamma": 0.4, "layers": layers})
    assert done.broad == tuple(names[number] for number in numbers)
    assert model(images()).isfinite().all()
