"""What the networks that become grafts share."""

from __future__ import annotations

import pytest

from vitnas.errors import ConfigError
from vitnas.nn.zoo.weights.hosts import check_size, count, linear, replaced
from vitnas.nn.zoo.weights.small_cvt import SmallCvt


def test_blocks_are_counted_by_their_numbers() -> None:
    shapes = {"a.0.b": (1,), "a.0.c": (1,), "a.11.b": (1,), "a.norm": (1,), "b.3.b": (1,)}
    assert count(shapes, "a.") == 2


def test_a_linear_layer_has_two_axes() -> None:
    assert linear({"a": (3, 4)}, "a") == (3, 4)
    with pytest.raises(ValueError, match="unpack"):
        linear({"a": (3,)}, "a")


def test_the_first_beginning_is_replaced() -> None:
    assert replaced("norm.weight", {"nor": "a", "norm.": "b."}) == "am.weight"
    assert replaced("x", {"y": "z"}) == "x"


def test_another_size_is_an_error_with_the_right_one() -> None:
    assert check_size(32, None) == check_size(32, 32) == 32
    with pytest.raises(ConfigError, match=r"--img-size = 64.*32x32.*nearest: 32"):
        check_size(32, 64)


def test_a_tensor_that_is_missing_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"head\.weight is missing, which every ska_small_cvt has"
    ):
        SmallCvt().infer(
            {SmallCvt.mark: (1, 1, 3, 3), "stage0.patch_embed.proj.weight": (1, 3, 7, 7)}
        )


def test_other_axes_are_no_network() -> None:
    shapes = {SmallCvt.mark: (1,), "stage0.patch_embed.proj.weight": (1,), "head.weight": (1,)}
    assert SmallCvt().infer(shapes) == []
    assert SmallCvt().has({SmallCvt.mark: (1,)})
    assert not SmallCvt().has({})
