"""Which network a state dict is of: hints that are wrong nowhere, from names and shapes alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vitnas.errors import ConfigError
from vitnas.nn.zoo.weights import LAYOUTS
from vitnas.nn.zoo.weights.find import check_fit
from vitnas.nn.zoo.weights.translate import expected

State = dict[str, Tensor]


def state_of_code(layout: str, model: str) -> State:
    """What the code's state dict of a zoo's model is, its tensors without memory."""
    code = LAYOUTS[layout]
    config, state = code.zoo(model), State()
    for ours, value in expected(config).items():
        names = code.source(ours, config, {}).names
        if layout == "sret" and ours == "pos_embed":
            side = round(value.shape[1] ** 0.5)
            value = torch.empty(1, value.shape[2], side, side, device="meta")
        state |= dict.fromkeys(names, value)
    return state


def refusal(layout: str, model: str, state: State) -> str:
    code = LAYOUTS[layout]
    with pytest.raises(ConfigError) as refused:
        check_fit(code, LAYOUTS.values(), code.zoo(model), state)
    return str(refused.value)


@pytest.mark.slow
def test_of_models_with_equal_shapes_all_are_named() -> None:
    """SReT's schedules have the same shapes: to name one of them would be a guess."""
    said = refusal("sret", "sret_s", state_of_code("sret", "sret_star_t"))
    names = "sret_t, sret_star_t, sret_t_g8_8_4_4, sret_t_g16_2_4_2"
    assert said.endswith(f"they fit --from sret and, by their shapes, each --model of {names}")


@pytest.mark.parametrize(
    ("code", "model"),
    [("caformer", "caformer_s18"), ("caformer", "convformer_s18"), ("ska", "cskaformer_s18")],
)
def test_weights_are_sent_to_the_code_that_is_known_for_them(code: str, model: str) -> None:
    """MetaFormer's names are in SKA's code, too."""
    said = refusal("timm", "caformer_b36", state_of_code(code, model))
    assert said.endswith(f" --from {code} --model {model}")
