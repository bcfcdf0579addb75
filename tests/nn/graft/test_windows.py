"""Static keys in Swin's windows: the formula, the mask, and nothing across the seam of a shift."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.nn.graft.networks import images, swin
from vitnas.nn.graft import graft
from vitnas.nn.graft.windows import neighbours_in

SHIFTED, REGULAR = "layers.0.blocks.1", "layers.0.blocks.0"
WINDOWS, TOKENS, DIM, HEADS = 4, 16, 16, 2


def grafted(mixer: str, **fields: Any) -> Any:
    """`swin` with new keys that are not near zero, its shifts deciding nothing by accident."""
    model = swin()
    graft(model, mixer=mixer, **fields)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".static_key" in name or ".key." in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


def windows(batch: int = 2) -> Tensor:
    return torch.randn(batch * WINDOWS, TOKENS, DIM, generator=torch.Generator().manual_seed(4))


def test_the_formula_with_relative_positions_and_mask() -> None:
    model, x = grafted("ska"), windows()
    block = model.get_submodule(SHIFTED)
    mixer, before = block.attn.mixer, swin().get_submodule(SHIFTED).attn
    query, value = mixer.qv(x).reshape(-1, TOKENS, 2, HEADS, 8).permute(2, 0, 3, 1, 4)
    logits = 8**-0.5 * query @ mixer.static_key.transpose(-2, -1) + before._get_rel_pos_bias()
    logits = logits + block.attn_mask.repeat(2, 1, 1)[:, None]
    expected = mixer.proj((logits.softmax(-1) @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(block.attn(x, mask=block.attn_mask), expected)


def test_the_table_of_relative_positions_is_kept_and_learns() -> None:
    model, before = grafted("ska"), swin().state_dict()
    tables = [name for name in before if "relative_position_bias_table" in name]
    assert len(tables) == 4
    assert model.no_weight_decay() == set(tables)
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in tables)
    model(images()).square().sum().backward()
    assert all(model.get_parameter(name).grad.any() for name in tables)


@pytest.mark.parametrize(
    ("mixer", "fields"),
    [
        ("ska", {}),
        ("ska", {"attn_act": "gelu"}),
        ("cska", {}),
        ("cska", {"key_kernel": 5}),
    ],
)
def test_nothing_leaks_across_the_seam_of_a_shift(mixer: str, fields: dict[str, Any]) -> None:
    """A token's output does not depend on a token of its window that comes from elsewhere."""
    block = grafted(mixer, **fields).get_submodule(SHIFTED)
    assert any(block.shift_size)
    x = windows(1).requires_grad_()
    out = block.attn(x, mask=block.attn_mask)
    together = torch.zeros(WINDOWS, TOKENS, WINDOWS, TOKENS, dtype=torch.bool)
    for window in range(WINDOWS):
        together[window, :, window] = block.attn_mask[window] == 0
    assert together[0, :, 0].all()
    assert not together[-1, :, -1].all()
    for window in range(WINDOWS):
        for token in range(TOKENS):
            (grad,) = torch.autograd.grad(out[window, token].sum(), x, retain_graph=True)
            assert torch.equal(grad.abs().sum(-1) > 1e-12, together[window, token])


def test_without_a_region_the_convolution_is_the_plain_one() -> None:
    """A mask that separates nothing gives what no mask gives."""
    attn = grafted("cska").get_submodule(REGULAR).attn
    nothing = torch.zeros(WINDOWS, TOKENS, TOKENS)
    torch.testing.assert_close(attn(windows(), mask=nothing), attn(windows()))


def test_the_convolution_sees_zeros_beyond_its_region() -> None:
    """As the same window with the tokens of the other region set to zero before the convolution."""
    block = grafted("cska").get_submodule(SHIFTED)
    mixer, mask = block.attn.mixer, block.attn_mask
    query = windows(1)
    for token in (0, 5, 15):
        own = (mask[:, token] == 0)[..., None]
        picture = (query * own).transpose(1, 2).reshape(-1, DIM, 4, 4)
        zeroed = mixer.scale * mixer.key(picture).flatten(2)
        expected = zeroed.reshape(WINDOWS, HEADS, TOKENS, TOKENS)[..., token]
        near = mask.gather(1, block.attn.neighbours.expand(WINDOWS, -1, -1))
        mixer.inside = (near == 0).float()
        rows = mixer._patch_rows(query, (4, 4))
        mixer.inside = None
        torch.testing.assert_close(rows[:, :, token], expected)


def test_nothing_of_a_call_stays_behind() -> None:
    model = grafted("cska")
    model(images())
    assert all(
        module.offset is None and module.inside is None
        for module in model.modules()
        if hasattr(module, "offset")
    )
    with pytest.raises(RuntimeError):
        model.get_submodule(SHIFTED).attn(windows()[..., :3])
    assert model.get_submodule(SHIFTED).attn.mixer.offset is None


def test_neighbours() -> None:
    near = neighbours_in((3, 4))
    assert near.shape == (9, 12)
    assert near[:, 5].tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10]
    assert near[4].tolist() == list(range(12))


def test_another_window_is_refused_in_forward() -> None:
    model = grafted("ska")
    model.set_input_size((24, 24))  # timm scales the windows with the picture: 6x6
    with pytest.raises(ValueError, match=r"for 16 tokens \(4x4\), but its input has 36"):
        model(torch.zeros(1, 3, 24, 24))


def test_a_map_can_be_looked_at() -> None:
    """As everywhere: a hook on `attn_drop` sees the map, and what is masked is zero in it."""
    model, seen = grafted("ska"), []
    block = model.get_submodule(SHIFTED)
    block.attn.mixer.attn_drop.register_forward_hook(lambda _, __, out: seen.append(out))
    block.attn.mixer.fused_attn = True  # there is no fused form of it to go wrong
    model(images())
    (found,) = seen
    assert isinstance(block.attn.mixer.attn_drop, nn.Dropout)
    assert found.shape == (2 * WINDOWS, HEADS, TOKENS, TOKENS)
    assert found[(block.attn_mask != 0).repeat(2, 1, 1)[:, None].expand_as(found)].max() < 1e-30
