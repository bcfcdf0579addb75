"""From another code's state dict to ours: what fits, what does not, and what is filled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.deepvit import Deepvit
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.nn.zoo.weights import LAYOUTS
from vitnas.nn.zoo.weights.translate import compare, expected, translate

State = dict[str, Tensor]
CODE = LAYOUTS["deepvit"]


@pytest.fixture(scope="module")
def state() -> State:
    code = Deepvit(24, 2, reattention=1, mlp_ratio=4, img_size=32, classes=10)
    return dict(filled(code).state_dict())


def config_of(state: State) -> ModelConfig:
    """The network of a state dict of two blocks, as the code computes it."""
    stage = {"token_mixer": "mhsa", "depth": 2, "embed_dim": 24, "num_heads": 12}
    tree = {"name": "small", "class_token": True, "reattention_blocks": 1, "stages": [stage]}
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    return CODE.fit(validate(ModelConfig, tree), shapes)


def changed(state: State, *names: str, **changes: Tensor) -> State:
    return {n: v for n, v in state.items() if n not in names} | changes


MISFITS: dict[str, tuple[Callable[[State], State], str]] = {
    "one missing": (
        lambda s: changed(s, "norm.weight"),
        "1 missing (norm.weight)",
    ),
    "one more": (
        lambda s: changed(s, dist_token=torch.zeros(1, 1, 24)),
        "1 unexpected (dist_token)",
    ),
    "transposed": (
        lambda s: s | {"blocks.0.mlp.fc1.weight": s["blocks.0.mlp.fc1.weight"].T.contiguous()},
        "1 of another shape or kind (blocks.0.mlp.fc1.weight is [24, 96] for [96, 24])",
    ),
    "shallower": (
        lambda s: {n: v for n, v in s.items() if "blocks.0" not in n},
        "12 missing (blocks.0.norm1.weight, blocks.0.norm1.bias, blocks.0.attn.proj.weight, "
        "blocks.0.attn.proj.bias, blocks.0.attn.qkv.weight, ...)",
    ),
    "no square of patches": (
        lambda s: s | {"pos_embed": torch.zeros(1, 7, 24)},
        "1 of another shape or kind (pos_embed is [1, 7, 24] for [1, 197, 24])",
    ),
    "no classes": (
        lambda s: changed(s, "head.weight", "head.bias"),
        "2 missing (head.weight, head.bias)",
    ),
}


def test_every_tensor_has_a_place(state: State) -> None:
    config = config_of(state)
    misfit = compare(CODE, config, state)
    assert misfit.fits
    assert (misfit.share, misfit.used, misfit.text()) == (1.0, len(state), "")
    translation = translate(CODE, config, state)
    assert translation.state.keys() == expected(config).keys()
    assert not translation.dropped
    assert not translation.filled
    assert torch.equal(translation.state["head.classifier.bias"], state["head.bias"])


@pytest.mark.parametrize("kind", sorted(MISFITS))
def test_what_does_not_fit_is_named(kind: str, state: State) -> None:
    change, text = MISFITS[kind]
    other = change(state)
    misfit = compare(CODE, config_of(other), other)
    assert not misfit.fits
    assert misfit.text() == text
    assert 0 < misfit.share < 1


def test_batch_norms_counter_may_be_missing(state: State) -> None:
    lacking = changed(state, "blocks.1.attn.var_norm.num_batches_tracked")
    config = config_of(lacking)
    assert compare(CODE, config, lacking).fits
    translation = translate(CODE, config, lacking)
    name = "stages.0.blocks.1.mixer.reattention.norm.num_batches_tracked"
    assert set(translation.filled) == {name}
    assert translation.state[name] == 0


def test_a_flop_counters_entries_are_dropped(state: State) -> None:
    counted = changed(state, **{"blocks.0.total_ops": torch.zeros(1)})
    config = config_of(counted)
    assert compare(CODE, config, counted).fits
    assert set(translate(CODE, config, counted).dropped) == {"blocks.0.total_ops"}


def test_half_precision_is_widened(state: State) -> None:
    half = {n: v.half() if v.is_floating_point() else v for n, v in state.items()}
    ours = translate(CODE, config_of(half), half).state["head.classifier.bias"]
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, state["head.bias"], atol=1e-3, rtol=0)


def test_another_kind_of_numbers_does_not_fit(state: State) -> None:
    whole = changed(state, **{"head.bias": torch.zeros(10, dtype=torch.long)})
    misfit = compare(CODE, config_of(whole), whole)
    assert misfit.shapes == ["head.bias holds whole numbers for floats"]
