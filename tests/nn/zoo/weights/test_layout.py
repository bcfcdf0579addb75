"""What all layouts say shapes with: each helper against its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.cost.closed_form import closed_form
from vitnas.errors import ConfigError
from vitnas.nn.zoo import zoo_config, zoo_names
from vitnas.nn.zoo.weights import LAYOUTS
from vitnas.nn.zoo.weights.layout import (
    first_axis,
    known,
    ratio_of,
    renamed,
    revised,
    sized,
    square,
)

VIT = zoo_config("vit_16b")  # 224 px, patches of 16 px


@given(st.integers(0, 20_000), st.integers(1, 4_000))
def test_a_ratio_gives_its_hidden_channels_back(hidden: int, width: int) -> None:
    assert int(ratio_of(hidden, width) * width) == hidden


def test_values_at_addresses_are_changed_and_rules_are_kept() -> None:
    changed = revised(VIT, {"stages.0.depth": 3, "broad.gamma": 0.4})
    assert (changed.stages[0].depth, changed.broad.gamma) == (3, 0.4)
    assert VIT.stages[0].depth == 16
    assert revised(VIT, {}) is VIT
    with pytest.raises(ConfigError, match="num_heads"):
        revised(VIT, {"stages.0.num_heads": 5})


def test_a_size_that_shapes_show_is_taken() -> None:
    assert sized(VIT, (224, 224), None) == {}
    assert sized(VIT, (384, 384), None) == {"img_size": 384}
    assert sized(VIT, (384, 192), None) == {"img_size": [384, 192]}
    with pytest.raises(ConfigError, match=r"--img-size = 224: .* 384x384 \(nearest: 384\)"):
        sized(VIT, (384, 384), 224)


@pytest.mark.parametrize(
    ("tokens", "sides"),
    [(196, (224, 224)), (576, (384, 384)), (1, (16, 16)), (7, (224, 224)), (-1, (224, 224))],
)
def test_patches_of_a_square_image(tokens: int, sides: tuple[int, int]) -> None:
    assert square(tokens, VIT) == sides


def test_names_and_axes() -> None:
    table = (("mixer.", "attn."), ("norm.", "norm1."))
    assert renamed("mixer.norm.bias", table) == "attn.norm.bias"
    assert renamed("norm.norm.bias", table) == "norm1.norm.bias"
    assert renamed("head.bias", table) == "head.bias"
    assert first_axis({"w": (3, 4)}, "w") == 3
    assert first_axis({"w": ()}, "w") is None
    assert first_axis({}, "w") is None
    assert known(a=0, b=None) == {"a": 0}


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_the_models_of_a_code_are_networks_of_the_zoo(name: str) -> None:
    """What the code alone sets changes no size."""
    layout = LAYOUTS[name]
    assert layout.models()
    assert set(layout.models()) <= set(zoo_names())
    for model in layout.models()[:4]:
        ours, plain = layout.zoo(model), zoo_config(model)
        assert closed_form(ours).num_params == closed_form(plain).num_params
        assert ours.grids == plain.grids
